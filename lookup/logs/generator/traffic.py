"""Draw lookups: when, for which topic, by which client.

The answers are those of `lookup.logs.generator.owners`.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lookup.logs.generator.timeline import Piece
from lookup.logs.generator.world import POPULARITY_BITS, Clients, Topics

__all__ = ["RECONNECT_S", "TABLE_BITS", "Draw", "Traffic", "log_normal_table"]

#: Clients of a bundle that lost its owner come back after a delay of this mean, seconds, and within `RECONNECT_S`.
_RECONNECT_MEAN_S = 3.0
RECONNECT_S = 30
#: Sessions opened in the last seconds before a loss are the ones that come back.
_SESSION_S = 300
#: Weights and latencies are drawn from tables of 2**12 quantiles: few distinct values compress and still look smooth.
TABLE_BITS = 12
_S = 1_000_000


@dataclass(frozen=True, eq=False)
class Draw:
    """Lookups in order of time, without their answers; columns of shape (n,)."""

    #: µs since the Unix epoch
    ts: NDArray[np.int64]
    topic: NDArray[np.int32]
    client: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ts)

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Draw:
        """Return some of the rows."""
        return Draw(self.ts[rows], self.topic[rows], self.client[rows])


def _joined(*draws: Draw) -> Draw:
    """Put rows together in order of time; of equal times the earlier argument comes first."""
    ts = np.concatenate([draw.ts for draw in draws])
    order = np.argsort(ts, kind="stable")
    topic = np.concatenate([draw.topic for draw in draws])
    client = np.concatenate([draw.client for draw in draws])
    return Draw(ts[order], topic[order], client[order])


_NOTHING = Draw(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


def log_normal_table(mean: float, sigma: float) -> NDArray[np.float64]:
    """Return the 2**12 quantiles of a log-normal distribution, rounded to whole millionths, shape (4096,).

    Args:
        mean: of the distribution, in the unit of the answer.
        sigma: standard deviation of the logarithm.
    """
    # Shifted by half the variance, so that the mean of the distribution and not its median is `mean`.
    normal = NormalDist(-sigma * sigma / 2, sigma)
    size = 1 << TABLE_BITS
    quantiles = [normal.inv_cdf((rank + 0.5) / size) for rank in range(size)]
    table: NDArray[np.float64] = np.round(mean * np.exp(quantiles), 6)
    return table


class Traffic:
    """The stream of one cluster's lookups, piece by piece, with the clients that come back after a loss."""

    def __init__(
        self, topics: Topics, clients: Clients, lookups: int, rack_affinity: float, dice: np.random.Generator
    ) -> None:
        self._topics = topics
        self._clients = clients
        self._left = lookups
        self._share_left = 1.0
        self._affinity = round(rack_affinity * 65_536)
        self._dice = dice
        self._recent = _NOTHING
        self._returning = _NOTHING
        #: lookups of clients that came back so far
        self.reconnects = 0

    def disturb(self, ts: int, topics: NDArray[np.bool_]) -> None:
        """Let the clients of some topics come back after an instant: those with a session opened shortly before.

        Args:
            ts: when they lost their broker, µs.
            topics: mask over the topics, shape (n_topics,).
        """
        hit = self._recent.at(topics[self._recent.topic] & (self._recent.ts >= ts - _SESSION_S * _S))
        # A heartbeat's client is the broker itself, which is lost.
        hit = hit.at(hit.topic < self._topics.ordinary)
        delay = self._dice.exponential(_RECONNECT_MEAN_S * _S, len(hit)).astype(np.int64)
        back = Draw(ts + 1 + np.minimum(delay, RECONNECT_S * _S - 1), hit.topic, hit.client)
        self._returning = _joined(self._returning, back)

    def draw(self, piece: Piece, *, last: bool) -> Draw:
        """Draw the lookups of a piece; the last piece takes all that are left."""
        is_due = self._returning.ts < piece.end
        back = self._returning.at(is_due).at(slice(0, self._left))
        self._returning = self._returning.at(~is_due)
        self.reconnects += len(back)
        left = self._left - len(back)
        # By the share of what is left, not of all: returning clients have taken some, and rounding must not add up.
        regular = left if last else min(left, round(left * piece.share / self._share_left))
        self._left = left - regular
        self._share_left = max(self._share_left - piece.share, 1e-12)
        rows = self._regular(piece, regular)
        if len(back):
            rows = _joined(rows, back)
        # Only the last minutes are kept: the sessions that a loss in the next piece may hit.
        since = piece.end - _SESSION_S * _S
        kept = self._recent.at(slice(int(np.searchsorted(self._recent.ts, since)), None))
        fresh = rows.at(slice(int(np.searchsorted(rows.ts, since)), None))
        self._recent = _joined(kept, fresh) if len(kept) else fresh
        return rows

    def _regular(self, piece: Piece, count: int) -> Draw:
        """Draw lookups by popularity of topics; clients are of the topic's home rack, or of any."""
        ts = self._dice.integers(piece.start, piece.end, count)
        ts.sort()
        # One word of luck a row: 20 bits choose the topic, 16 say whether the client is at home, the 28 on top which.
        words = self._dice.integers(0, 2**64, count, dtype=np.uint64)
        slots = (words & np.uint64((1 << POPULARITY_BITS) - 1)).astype(np.int32)
        topic = self._topics.popularity[slots]
        at_home = ((words >> np.uint64(POPULARITY_BITS)) & np.uint64(0xFFFF)).astype(np.int32) < self._affinity
        fraction = (words >> np.uint64(36)).astype(np.int64)
        clients, home = self._clients, self._topics.home[topic]
        size = np.where(at_home, clients.count[home], clients.ordinary)
        first = np.where(at_home, clients.first[home], 0)
        picked = first + ((fraction * size) >> 28)
        # Brokers look up their own heartbeat topics, whatever the dice say.
        beat = topic >= self._topics.ordinary
        picked[beat] = clients.ordinary + topic[beat] - self._topics.ordinary
        return Draw(ts, topic, np.asarray(picked, dtype=np.int32))
