"""Pulsar's state channel: the states through which brokers hand service units over, and their answers meanwhile.

Pure state machines: messages and times come in as arguments, effects go out; nothing here does I/O or reads a clock.
`service_unit` has the records and the rule that decides between two of them, `broker` one broker's end of the channel,
`leader` the records that the leader writes over others, `lookups` the answers that clients get.

Source: `docs/pulsar/load-managers.md`, `docs/service-units.md`.
"""

__all__: list[str] = []
