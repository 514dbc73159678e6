"""The shared packet memory of a switch of the reference engine.

It has admission, headroom, Xoff and Xon for all ports.
Source: `docs/models/packet-engine.md`, sections Admission and Pause and resume; the dynamic threshold is that of
Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262.
Leaves out: cells; the frames that ask for a pause, which are the port's.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BufferConfig", "Ingress", "SharedBuffer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferConfig:
    """A buffer as set by device, transport and fabric.

    Parameters
    ----------
    shared_bytes, reserve_bytes : shared part of the buffer, and what each (port, class) has for itself
    headroom_bytes : by port id, of each lossless class whose ingress is the port
    alpha, egress_alpha : share of what is free that an ingress of a lossless class, and an egress of another, may take
    xon_offset_bytes : a pause ends this far below its threshold
    lossless : by class index
    """

    shared_bytes: int
    reserve_bytes: int
    headroom_bytes: dict[int, int]
    alpha: float
    egress_alpha: float
    xon_offset_bytes: int
    lossless: tuple[bool, ...]


class Ingress:
    """Buffer held by packets of one ingress (port, class)."""

    def __init__(self) -> None:
        self.used_bytes = 0
        self.headroom_used_bytes = 0

    @property
    def held_bytes(self) -> int:
        """All held bytes."""
        return self.used_bytes + self.headroom_used_bytes


class SharedBuffer:
    """Buffer accounting by sizes, ports and classes, without packets.

    Parameters
    ----------
    config : what it is
    ports : ids of the ports of the switch

    Attributes
    ----------
    ingress : by port id and class
    shared_used_bytes : sum over all ingresses of what each uses above the reserve
    """

    def __init__(self, config: BufferConfig, ports: list[int]) -> None:
        self.config = config
        self.ingress = {port: [Ingress() for _ in config.lossless] for port in ports}
        self.shared_used_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Free bytes of the shared part."""
        return max(0, self.config.shared_bytes - self.shared_used_bytes)

    def admit(self, port: int, c: int, size_bytes: int, *, is_paused: bool, queue_bytes: int) -> str | None:
        """Admit a packet of an ingress, or return the reason for a drop.

        A drop changes nothing.

        Parameters
        ----------
        port, c : by which it came in
        size_bytes : of the frame
        is_paused : whether the far end has been asked to pause the class
        queue_bytes : that wait before it at its egress
        """
        config, ingress = self.config, self.ingress[port][c]
        before = ingress.used_bytes - config.reserve_bytes
        after = before + size_bytes
        growth = max(0, after) - max(0, before)
        is_full = self.shared_used_bytes + growth > config.shared_bytes
        if config.lossless[c]:
            if is_paused or is_full:
                if ingress.headroom_used_bytes + size_bytes > config.headroom_bytes[port]:
                    return "headroom_full" if is_paused else "buffer_full"
                ingress.headroom_used_bytes += size_bytes
                return None
        else:
            threshold = config.reserve_bytes + int(config.egress_alpha * self.free_bytes)
            if queue_bytes + size_bytes > threshold:
                return "egress_threshold"
            if is_full:
                return "buffer_full"
        self._use(ingress, size_bytes)
        return None

    def _use(self, ingress: Ingress, change_bytes: int) -> None:
        """Change the bytes of an ingress and its share of the buffer."""
        before = ingress.used_bytes - self.config.reserve_bytes
        after = before + change_bytes
        ingress.used_bytes += change_bytes
        self.shared_used_bytes += max(0, after) - max(0, before)

    def release(self, port: int, c: int, size_bytes: int) -> None:
        """Release a packet's bytes, headroom first."""
        ingress = self.ingress[port][c]
        if ingress.headroom_used_bytes:
            from_headroom = min(ingress.headroom_used_bytes, size_bytes)
            ingress.headroom_used_bytes -= from_headroom
            size_bytes -= from_headroom
        self._use(ingress, -size_bytes)

    def settle_headroom(self, port: int, c: int) -> None:
        """Count headroom bytes as used from now on."""
        ingress = self.ingress[port][c]
        moved_bytes, ingress.headroom_used_bytes = ingress.headroom_used_bytes, 0
        self._use(ingress, moved_bytes)

    def wants_pause(self, port: int, c: int) -> bool:
        """Whether an unpaused ingress is above Xoff."""
        if not self.config.lossless[c]:
            return False
        ingress = self.ingress[port][c]
        limit_bytes = int(self.config.alpha * self.free_bytes)
        return ingress.used_bytes - self.config.reserve_bytes > limit_bytes or ingress.headroom_used_bytes > 0

    def resumes(self, port: int, c: int) -> bool:
        """Whether the pause of an ingress ends now.

        At or below its reserve, its headroom counts as used then.
        """
        ingress = self.ingress[port][c]
        limit_bytes = int(self.config.alpha * self.free_bytes) - self.config.xon_offset_bytes
        if ingress.held_bytes <= self.config.reserve_bytes:
            self.settle_headroom(port, c)
            return True
        return ingress.headroom_used_bytes == 0 and ingress.used_bytes - self.config.reserve_bytes <= limit_bytes
