"""Unreliable connections: what a dropped message leaves behind."""

from helpers.rdma_pair import Pair

from weftwork.rdma.verbs import QpType, WcOpcode, WrOpcode


def test_a_write_leaves_the_receive_of_a_dropped_message_to_the_next_send() -> None:
    pair = Pair(qp_type=QpType.UC)
    pair.drop = {1}
    pair.post_recv(1, 7, 0, 1024)
    for wr_id, opcode in enumerate((WrOpcode.SEND, WrOpcode.RDMA_WRITE, WrOpcode.SEND_WITH_IMM)):
        place = pair.remote(0, 4096) if opcode is WrOpcode.RDMA_WRITE else {}
        pair.post(0, opcode, wr_id, sg_list=(pair.sge(0, 0, 1024),), imm_data=5, **place)
    assert pair.run()
    assert [(wc.wr_id, wc.opcode, wc.imm_data) for wc in pair.poll(1)] == [(7, WcOpcode.RECV, 5)]
