"""A queue pair of any RDMA device, for orders on standard input; `kernel_nic.PyverbsEnd` starts it.

It runs with the Python that has rdma-core's pyverbs, which need not be that of the tests. An order is a line of JSON,
and so is its answer.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

PATIENCE_S = 60.0
RIGHTS = 1 | 2 | 4 | 8  # enum ibv_access_flags: local write; remote write, read and atomic
QP_KINDS = {"RC": 2, "UC": 3, "UD": 4}  # enum ibv_qp_type
SIGNALED = 2  # enum ibv_send_flags
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}  # enum ibv_mtu


class End:
    """Orders are its methods."""

    def open(self, name: str, gid_index: int, kind: str, size_bytes: int) -> dict[str, int]:
        from pyverbs.cq import CQ
        from pyverbs.device import Context
        from pyverbs.mr import MR
        from pyverbs.pd import PD
        from pyverbs.qp import QP, QPCap, QPInitAttr

        self.kind, self.gid_index, self.size_bytes = kind, gid_index, size_bytes
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 256)
        self.mr = MR(self.pd, size_bytes, RIGHTS)
        cap = QPCap(max_send_wr=64, max_recv_wr=64)
        self.qp = QP(self.pd, QPInitAttr(qp_type=QP_KINDS[kind], scq=self.cq, rcq=self.cq, cap=cap))
        return {"qp_num": self.qp.qp_num, "addr": self.mr.buf, "rkey": self.mr.rkey}

    def connect(self, gid: str, qp_num: int, path_mtu: int, **attr: int) -> None:
        from pyverbs.addr import GID, AHAttr, GlobalRoute
        from pyverbs.qp import QPAttr

        wanted = QPAttr(port_num=1)
        if self.kind != "UD":
            route = GlobalRoute(dgid=GID(gid), sgid_index=self.gid_index, hop_limit=64)
            wanted.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
            wanted.dest_qp_num, wanted.path_mtu = qp_num, MTU_CODES[path_mtu]
            wanted.qp_access_flags = RIGHTS
        for name, value in attr.items():
            setattr(wanted, name, value)
        self.qp.to_rts(wanted)

    def post(self, opcode: int, at: int, length: int, **more: Any) -> None:
        from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
        from pyverbs.wr import SGE, SendWR

        sge = SGE(self.mr.buf + at, length, self.mr.lkey)
        wr = SendWR(wr_id=1, opcode=opcode, num_sge=1, sg=[sge], send_flags=SIGNALED, imm_data=more.get("imm_data", 0))
        if "compare_add" in more:
            wr.set_wr_atomic(more["rkey"], more["remote_addr"], more["compare_add"], more.get("swap", 0))
        elif "rkey" in more:
            wr.set_wr_rdma(more["rkey"], more["remote_addr"])
        elif self.kind == "UD":
            route = GlobalRoute(dgid=GID(more["gid"]), sgid_index=self.gid_index, hop_limit=64)
            self.ah = AH(self.pd, attr=AHAttr(port_num=1, is_global=1, gr=route))
            wr.set_wr_ud(self.ah, more["remote_qpn"], more["remote_qkey"])
        self.qp.post_send(wr)

    def recv(self, at: int, length: int) -> None:
        from pyverbs.wr import SGE, RecvWR

        self.qp.post_recv(RecvWR(wr_id=2, num_sge=1, sg=[SGE(self.mr.buf + at, length, self.mr.lkey)]))

    def wait(self) -> dict[str, int]:
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            count, found = self.cq.poll()
            if count:
                names = ("wr_id", "status", "opcode", "byte_len", "imm_data", "src_qp", "wc_flags")
                return {name: getattr(found[0], name) for name in names}
        return {}

    def write(self, at: int, data: str) -> None:
        raw = bytes.fromhex(data)
        self.mr.write(raw, len(raw), at)

    def read(self, at: int, length: int) -> str:
        return bytes(self.mr.read(length, at)).hex()

    def state(self) -> int:
        return int(self.qp.query(1)[0].cur_qp_state)


def main() -> None:
    end = End()
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(end, order.pop("order"))(**order)
        sys.stdout.write(json.dumps({"answer": answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
