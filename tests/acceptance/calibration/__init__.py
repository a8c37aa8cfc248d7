"""Calibration: do verdicts find no difference between equals, and the differences there are?

`python -m tests.acceptance.calibration` (`make calibrate`) does all of it and writes `docs/calibration.md`; the tests
here do a short part of it in `make test-thorough`. Replays run in this process, without Spark.
"""

from __future__ import annotations

__all__: list[str] = []
