"""Our policies beside Pulsar's own classes: `python -m tests.parity --help`."""
