"""An answer of one seed with its suspects, made by hand."""

from __future__ import annotations

from weftwork.spec.answer import Answer, Culprit, Evidence, Limit, Took


def answer(
    *suspects: Culprit,
    seconds: float | None = 2.0,
    port: str = "a->b",
    share: float | None = 0.5,
    evidence: Evidence | None = None,
) -> Answer:
    return Answer(
        took=Took(what="all messages", seconds=seconds, number="completion_ps"),
        limited_by=Limit(name=port, share=share, number="busiest_link"),
        culprit=suspects[0],
        others=suspects[1:],
        evidence=evidence,
    )
