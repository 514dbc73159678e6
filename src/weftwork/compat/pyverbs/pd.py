"""Protection domains.

Source: pyverbs, pd.pyx (names); IBTA vol. 1, 10.2.3.
Leaves out: import of another process's domain; buffers that a parent domain could allocate.
"""

from __future__ import annotations

from errno import EFAULT, EINVAL
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.base import NicObject, PyverbsObject
from weftwork.compat.pyverbs.device import Context
from weftwork.compat.pyverbs.libibverbs_enums import _IBV_ADVISE_MR_FLAG_FLUSH
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError, not_supported
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weftwork.compat.pyverbs.wr import SGE
    from weftwork.rdma.memory import ProtectionDomain

__all__ = ["PD", "ParentDomain", "ParentDomainContext", "ParentDomainInitAttr"]

_ADVICE: Final = (0, 1, 2)  # libibverbs, enum ib_uverbs_advise_mr_advice


class PD(NicObject):
    """A protection domain.

    Parameters
    ----------
    creator : a context, or a communication identifier with a domain of its own
    handle : of a domain to import, which a software NIC does not support

    Attributes
    ----------
    ctx : its context; None when it is closed
    nic : the device
    domain : for the NIC
    """

    closes = 9

    def __init__(self, creator: Any, **kwargs: Any) -> None:  # noqa: ANN401 - a context or an identifier
        if kwargs.get("handle") is not None:
            raise not_supported("Importing a PD")
        context = creator if isinstance(creator, Context) else getattr(creator, "ctx", None)
        if not isinstance(context, Context):
            raise PyverbsUserError(f"Cannot create PD from {type(creator)}")
        self.nic = context.nic
        self.domain = self._allocate()
        self.ctx: Context | None = context
        self.is_open = True
        if context is not creator:
            creator.pd = self
        context.add_ref(self)

    def _allocate(self) -> ProtectionDomain:
        return self.nic.device.alloc_pd()

    @property
    def handle(self) -> int:
        """A number of the domain in this process."""
        return id(self.domain) & 0xFFFFFFFF

    @property
    def pd(self) -> int:
        """A number of the object in this process."""
        return id(self.domain)

    def advise_mr(self, advise: int, flags: int, sg_list: Sequence[SGE]) -> int:
        """Advise the device about pages that it will need.

        The pages of a software NIC are those of the program, so there is nothing to do.

        Parameters
        ----------
        advise, flags : see ibv_advise_mr(3)
        sg_list : ranges, each of a region of this domain
        """
        if int(advise) not in _ADVICE or flags & ~_IBV_ADVISE_MR_FLAG_FLUSH:
            raise PyverbsRDMAError("Failed to advise MR", EINVAL)
        with self.nic.device.lock:
            views = [self.nic.device.nic.memory.local(self.domain, sge.entry, AccessFlags(0)) for sge in sg_list]
        if None in views:
            raise PyverbsRDMAError("Failed to advise MR", EFAULT)
        return 0

    def close(self) -> None:
        """Close all objects of the domain, and the domain."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            self.ctx = None


class ParentDomainContext(PyverbsObject):
    """Allocators of a program for the buffers of a device.

    A software NIC has no such buffers: its queues are objects of Python. So it never calls the functions.

    Parameters
    ----------
    pd : domain
    alloc_func, free_func : kept for the program
    user_data : kept for the program
    """

    def __init__(
        self,
        pd: PD,
        alloc_func: Callable[..., int] | None,
        free_func: Callable[..., None] | None,
        user_data: object = None,
    ) -> None:
        self.pd = pd
        self.p_alloc = alloc_func
        self.p_free = free_func
        self.user_data = user_data


class ParentDomainInitAttr(PyverbsObject):
    """Attributes of a parent domain.

    Parameters
    ----------
    pd : the domain whose objects it shares
    pd_context : allocators, which a software NIC has no use for
    """

    def __init__(self, pd: PD, pd_context: ParentDomainContext | None = None) -> None:
        self.pd = pd
        self.pd_context = pd_context
        self.comp_mask = 0b11 if pd_context is not None else 0


class ParentDomain(PD):
    """A domain that shares the objects of another one.

    Parameters
    ----------
    context : of the device
    attr : see `ParentDomainInitAttr`
    """

    closes = 0

    def __init__(self, context: Context, attr: ParentDomainInitAttr) -> None:
        self.protection_domain = attr.pd
        super().__init__(context)
        attr.pd.add_ref(self)

    def _allocate(self) -> ProtectionDomain:
        return self.protection_domain.domain
