# SPDX-License-Identifier: Apache-2.0
"""What the door of reporters lets through, and how long it waits. Every bound has a default that a site of ten thousand nodes lives with."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    connections: int = 20_000
    """Connections that are open at once; more are answered 503 and closed."""
    head: int = 16 * KIB
    """A request's line and headers."""
    body: int = 8 * MIB
    """A request's body, after inflation too."""
    flight: int = 256 * MIB
    """Bodies that are held in memory at once, those that still come in and those that wait for the writer."""
    flight_each: int = 32 * MIB
    """The same of one reporter."""
    idle: float = 900.0
    """A connection without a request is closed; longer than any cadence, for a handshake costs more than a report."""
    stranger: float = 60.0
    """The same for one that has shown no access token yet, so that strangers cannot hold all connections."""
    head_time: float = 10.0
    """From the first byte of a request, or of a connection's handshake, to the end of its head."""
    body_time: float = 60.0
    """From the end of the head to the end of the body."""
    gather: float = 0.05
    """Reports are gathered for so long before they go to the writer in one commit."""
    batch: int = 512
    """Reports of one commit, at most."""
    batch_bytes: int = MIB
    """Bytes of one commit, at most (one report may be more)."""
    large: int = 128 * KIB
    """Reports of more bytes go to the writer alone, by turns with a batch of others."""
    dear: float = 0.5
    """The next report of who took so many seconds of the writer's processor time goes alone too, whatever its size."""
    large_each: int = 4
    """Such reports of one reporter that wait; the next is answered 429."""
    share: float = 15.0
    """Seconds of the writer's processor time that the reporter of one node may take in a minute; with more it is answered 429 until that is past."""
    share_of_many: float = 45.0
    """The same for who reports for several nodes."""
    rest: float = 0.05
    """After a turn that brought reports the listener sleeps until the next batch is due or an answer is there, for so long at most: it wakes once for many."""
    queue: int = 8_192
    """Reports that wait for the writer; with more, the next are answered 429."""
    queue_bytes: int = 128 * MIB
    """Bytes that wait for the writer; with more, the next are answered 429."""
    queue_age: float = 5.0
    """When the oldest report has waited for so long, the next are answered 429."""
    patience: float = 15.0
    """A report that the writer has not taken after so long is answered 503."""
    retry: float = 10.0
    """Who is sent away is asked to come back within so many seconds, each at another one."""
    askers: int = 4
    """Threads that ask the gate."""
    asking: int = 4_096
    """Questions to the gate that wait; with more, the next are answered 429."""
    grace: float = 10.0
    """When the door is closed, requests that are under way have so long to end."""
