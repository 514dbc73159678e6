"""The scorecard: every published set, or a user's own rows, predicted and scored.

A set says what it is calibrated on and what is declared; nothing is fitted here. A row of iterations is a scenario, and
takes the road of every run. Rows run in parallel over processes.
Source: `weftwork.data.measured`, `weftwork.study.validation.published_cases`, `weftwork.study.validation.curves`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from errno import EEXIST
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.stop import unfinished
from weftwork.base.whole_file import temporary_beside
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.pool.side_by_side import Workers, worker_processes
from weftwork.study.validation.curves import CurveRow, one_server, p5, p5_small, rows_of
from weftwork.study.validation.evidence import EVIDENCE
from weftwork.study.validation.predict import predict
from weftwork.study.validation.published_cases import Case, bridge, sc21, vtrain_multi_node, vtrain_single_node
from weftwork.study.validation.row_scenario import write_row, yaml_name
from weftwork.study.validation.scorecard import Excluded, LeftOut, Point, Score
from weftwork.study.validation.sets import Row, ValidationSet
from weftwork.study.validation.signs import SignRow
from weftwork.study.validation.ultra_ethernet import UetRow, permutations, small_cases

__all__ = [
    "BY_NAME",
    "NAIVE_MFU",
    "SETS",
    "Progress",
    "ValidationSet",
    "point_of",
    "scored",
    "validate",
    "write_scenarios",
    "write_sets",
]

NAIVE_MFU: Final = 0.45  # what people assume who have no model: a usual figure of large jobs
_NAIVE: Final = f"{100 * NAIVE_MFU:.0f} % of the GPU's peak in this precision"
_EVERY: Final = 6  # chosen: of 360 small rows, so that a scorecard without --full takes less than a minute

BY_NAME: Final = frozenset({"fabric-signs", "uet"})  # a minute of CPU time for their rows: by name, or with --full

Progress = Callable[[str, int, int], None]  # title of the set, rows done, rows of the set


_CONSTANT: Final = "vTrain 39.1B (efficiency of matrix products), one server at Azure (NVLink)"
_BRIDGE: Final = "NVIDIA Megatron-Bridge, performance summary"
_SLOW_PLANS: Final = (
    "13 plans (all with tensor parallelism of 2, half of those with 4) ran 12 to 39 % slower than any smooth model "
    "predicts; the data set does not explain these plans, and they are not left out."
)
_GPT_OSS: Final = (
    "A known failure without a known cause: measured iterations take 1.3 to 2.3 times as long as Weftwork predicts, "
    "in BF16 and in MXFP8, with graphs of parts and of whole iterations alike, so launches are not the cause. No "
    "measurement of its kernels is public. The figures of 26.06.01 are low because of a regression of cuDNN, as a "
    "footnote of the table says."
)
_LAUNCHES: Final = (
    "Launches limit these iterations: with a CPU time of 8 us, PyTorch with fused operations, MAPE would be 24 % "
    "(benchmarks/fit_matmul.py --launch)."
)
_LAUNCH: Final = ("training.software.launch", tuple(f"{us}us" for us in (24, 30, 36, 42, 48, 54, 60)))
_WITHOUT_GRAPHS: Final = (
    "Iterations without CUDA graphs wait for the CPU, and one constant represents the CPUs of all hosts: with it, "
    "Qwen3 235B on B200 comes out 19 % too slow and DeepSeek-V3 on B200 21 % too fast."
)
_MANY_EXPERTS: Final = (
    "If a GPU has 16 experts or more, iterations come out 9 to 20 % too fast, also with graphs of whole iterations: "
    "products of few rows are slower than the smooth model predicts."
)
_GB200: Final = (
    "The errors are in the rows of GB200: they come out 5 to 18 % too fast, in all releases alike, and the rows of "
    "GB300 do not. Rates of products, casts and attention are from others' measurements on single GPUs; MLPerf's rows "
    "of the same model on GB200 are within 5 % (`mlperf-llama3`). Nobody has published what else slows these rows."
)
_ONE_FITTED: Final = (
    "One constant is fitted to all of these rows at once: the CPU time of an operation. Recipes are read from their "
    "source, kernels and exchanges come from other measurements (docs/models/training.md). The line above is the "
    "judge: the error of configurations that a fit does not see."
)
_VTRAIN: Final = "data set of vTrain (MICRO 2024)"
_UET: Final = "committed results of the Ultra Ethernet reference model, ultraethernet/uet-htsim"
_LINE_RATE: Final = "line rate"
_EARLIER_MODEL: Final = (
    "Likely cause: this table is older than the present NSCC of the model's repository. The options of its runs "
    "(-cwnd, -q, -ecn) are from earlier experiment files there, whose NSCC adapted by other rules and had every "
    "packet acknowledged; the table names no version. The set `uet-small` compares the present NSCC with present "
    "runs."
)
_NO_SCENARIO: Final = "A row runs on the packet engine and has no scenario, since the model's packets are not RoCEv2."
_OBLIVIOUS: Final = (
    "The one row beyond 5 % is `oblivious`: without feedback, the tail depends on the hash and on the permutation, "
    "and the table has only one draw of these."
)


def _single_node(is_full: bool) -> tuple[Sequence[Case], Sequence[Excluded]]:  # noqa: FBT001
    cases = vtrain_single_node()
    return (cases if is_full else cases[::_EVERY]), ()


def _curves(operation: Literal["all-reduce", "all-gather", "all-to-all"]) -> tuple[Score, ...]:
    return p5(operation, is_calibrated=False), p5(operation, is_calibrated=True)


def _small_curves() -> tuple[Score, ...]:
    return p5_small(is_calibrated=False), p5_small(is_calibrated=True)


SETS: Final[dict[str, ValidationSet]] = {
    made.key: made
    for made in (
        ValidationSet(
            key="vtrain-39b",
            title="GPT of 39.1 billion parameters, 47 plans on 512 A100",
            cases=lambda _: (vtrain_multi_node(), ()),
            role="calibration",
            calibrated_on="these rows: efficiency of matrix products, one constant, L1",
            source=_VTRAIN,
            tolerance=0.08,
            notes=(_SLOW_PLANS,),
        ),
        ValidationSet(
            key="vtrain-single-node",
            title="Small GPTs on one to eight A100 of one server",
            cases=_single_node,
            role="declared",
            calibrated_on="CPU time of an operation (36 us) was read from these rows; otherwise as the other sets",
            source=_VTRAIN,
            tolerance=0.07,
            notes=(_LAUNCHES,),
        ),
        ValidationSet(
            key="sc21",
            title="Megatron-LM at SC 2021: weak scaling of GPT to 530 billion parameters on 2,520 A100",
            cases=lambda _: (sc21(), ()),
            calibrated_on=_CONSTANT,
            source="Narayanan et al., SC 2021, table 1; times from the published FLOP/s",
            tolerance=0.03,
            notes=("Micro batches are those of the scripts in NVIDIA/Megatron-LM, examples/sc21.",),
        ),
        ValidationSet(
            key="bridge-dense-fp8",
            title="Llama 3 of 70 and 405 billion parameters in FP8 and MXFP8, H100 to GB300",
            cases=lambda _: bridge("dense-fp8"),
            role="declared",
            calibrated_on=f"{_CONSTANT}; recipes are read; the share that their overlap hides is a declared prior",
            source=_BRIDGE,
            tolerance=0.05,
            notes=(_GB200,),
            splits=("GPU",),
        ),
        ValidationSet(
            key="bridge-dense-nvfp4",
            title="Llama 3 of 70 and 405 billion parameters in NVFP4, GB200 and GB300",
            cases=lambda _: bridge("dense-nvfp4"),
            role="declared",
            calibrated_on=f"{_CONSTANT}; recipes are read; the share that their overlap hides is a declared prior",
            source=_BRIDGE,
            tolerance=0.05,
            notes=(_GB200,),
            splits=("GPU",),
        ),
        ValidationSet(
            key="bridge-experts",
            title="Mixtures of experts: DeepSeek-V3, Qwen3, Nemotron 3, H100 to GB300",
            cases=lambda _: bridge("experts"),
            role="calibration",
            calibrated_on="these rows: CPU time of an operation, one constant, L1; recipes are read",
            source=_BRIDGE,
            tolerance=0.10,
            notes=(_ONE_FITTED, _WITHOUT_GRAPHS, _MANY_EXPERTS),
            splits=("GPU", "model"),
            without=("model", "nemotron-3-super"),
            refit=_LAUNCH,
        ),
        ValidationSet(
            key="bridge-gpt-oss",
            title="GPT-OSS of 120 billion parameters: reported apart, not judged",
            cases=lambda _: bridge("gpt-oss"),
            role="declared",
            calibrated_on=f"{_CONSTANT}; recipes are read",
            source=_BRIDGE,
            notes=(_GPT_OSS,),
            splits=("GPU",),
        ),
        ValidationSet(key="nccl-one-server", title="nccl-tests in one server", curves=one_server),
        ValidationSet(key="nccl-p5-all-reduce", title="nccl-tests on AWS p5", curves=partial(_curves, "all-reduce")),
        ValidationSet(key="nccl-p5-all-gather", title="nccl-tests on AWS p5", curves=partial(_curves, "all-gather")),
        ValidationSet(key="nccl-p5-all-to-all", title="nccl-tests on AWS p5", curves=partial(_curves, "all-to-all")),
        ValidationSet(key="nccl-p5-small", title="nccl-tests on AWS p5, small sizes", curves=_small_curves),
        ValidationSet(
            key="uet-small",
            title="Ultra Ethernet at 100 Gb/s: a lone flow, incasts and sprayed permutations of 1,024 hosts",
            packets=lambda _: small_cases(),
            calibrated_on="nothing",
            source=_UET,
            tolerance=0.05,
            notes=(_OBLIVIOUS, _NO_SCENARIO),
        ),
        ValidationSet(
            key="uet",
            title="Ultra Ethernet: sprayed permutations of 8,192 hosts at 200 and 400 Gb/s, last completion",
            packets=lambda is_full: permutations(is_full=is_full),
            calibrated_on="nothing",
            source=_UET,
            tolerance=0.05,
            notes=(_EARLIER_MODEL, _NO_SCENARIO),
        ),
        *EVIDENCE,
    )
}


def validate(
    keys: Iterable[str] = (), *, is_full: bool = False, processes: int = 2, progress: Progress | None = None
) -> tuple[Score, ...]:
    """Predict sets and score them.

    Parameters
    ----------
    keys : of `SETS`; by default all, and without ``is_full`` all but those `BY_NAME`
    is_full : all rows, also of sets that take more than a minute
    processes : that predict side by side
    progress : is told how far a set is

    Raises
    ------
    ConfigError : there is no such set
    """
    scores: list[Score] = []
    named = tuple(keys) or tuple(key for key in SETS if is_full or key not in BY_NAME)
    wanted = _known(named)
    with worker_processes(processes) as workers:
        for key in wanted:
            scores += scored(SETS[key], is_full=is_full, workers=workers, progress=progress)
    return tuple(scores)


def write_scenarios(folder: Path, keys: Iterable[str] = (), *, is_full: bool = False) -> int:
    """Write the scenarios of rows, each set into its own folder.

    Parameters
    ----------
    folder : which must not exist
    keys : of `SETS`; all by default
    is_full : all rows

    Returns
    -------
    how many were written

    Raises
    ------
    ConfigError : there is no such set, or the folder is there already
    """

    def rows(key: str) -> tuple[Case | CurveRow | SignRow, ...]:
        make, compare = SETS[key].cases, SETS[key].signs
        cases = () if make is None else make(is_full)[0]
        return (*cases, *(() if compare is None else compare()[0]), *rows_of(key))

    return write_sets(folder, {key: rows(key) for key in _known(keys)})


def write_sets(folder: Path, sets: Mapping[str, Sequence[Case | CurveRow | SignRow]]) -> int:
    """Write the scenarios of rows; as `write_scenarios`.

    Parameters
    ----------
    folder : which must not exist
    sets : rows by the folder that they go into
    """
    written = 0
    try:
        if folder.exists():
            raise FileExistsError(EEXIST, os.strerror(EEXIST))
        with unfinished(temporary_beside(folder)) as fresh:
            for key, rows in sets.items():
                (fresh / key).mkdir(parents=True)
                for row in rows:
                    if isinstance(row, CurveRow):
                        words = f"{row.operation} {row.name}{' calibrated' if row.is_calibrated else ''}"
                        (fresh / key / yaml_name(words)).write_text(write_tree(row.scenario()), encoding="utf-8")
                    elif isinstance(row, SignRow):
                        for name, tree in row.scenarios().items():
                            (fresh / key / yaml_name(name)).write_text(write_tree(tree), encoding="utf-8")
                    else:
                        write_row(row, fresh / key)
                    written += 1
            fresh.rename(folder)
    except OSError as error:
        text = f"cannot be made: {error.strerror}; name a folder that does not exist"
        raise ConfigError(str(folder), [Mistake(path="--write-scenarios", text=text)]) from error
    return written


def _known(keys: Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(keys) or tuple(SETS)
    mistakes = [
        Mistake(path="set", text=f"found '{key}', wanted {', '.join(SETS)}", fix=nearest(key, SETS))
        for key in wanted
        if key not in SETS
    ]
    if mistakes:
        raise ConfigError("validate", mistakes)
    return wanted


def scored(chosen: ValidationSet, *, is_full: bool, workers: Workers, progress: Progress | None) -> tuple[Score, ...]:
    """Predict a set and score it; as `validate`.

    Parameters
    ----------
    chosen : the set
    is_full, progress : as for `validate`
    workers : that predict
    """
    if chosen.curves is not None:
        return chosen.curves()
    rows: Sequence[Row] = chosen.rows
    excluded: Sequence[Excluded] = chosen.excluded
    if chosen.cases is not None:
        rows, excluded = chosen.cases(is_full)
    elif chosen.packets is not None:
        rows, excluded = chosen.packets(is_full)
    elif chosen.signs is not None:
        rows, excluded = chosen.signs()
    asked: list[tuple[Row, dict[str, str]]] = [(row, {}) for row in rows]
    points: list[Point] = []
    for point in workers.answers(point_of, asked):
        points.append(point)
        if progress is not None:
            progress(chosen.title, len(points), len(rows))
    score = Score(
        key=chosen.key,
        title=chosen.title,
        role=chosen.role,
        calibrated_on=chosen.calibrated_on,
        source=chosen.source,
        naive=_naive(chosen, rows),
        tolerance=chosen.tolerance,
        points=tuple(points),
        excluded=tuple(excluded),
        notes=chosen.notes,
        splits=chosen.splits,
        without=chosen.without,
        left_out=_left_out(chosen, rows, workers, progress) if is_full and chosen.refit is not None else None,
        is_ratio=chosen.signs is not None,
    )
    if chosen.key == "vtrain-single-node" and not is_full:
        sampled = f"Every {_EVERY}th row; all with --full."
        score = replace(score, notes=(*score.notes, sampled))
    if chosen.key == "uet" and not is_full:
        score = replace(score, notes=(*score.notes, "Rows of 64 paths, 1 and 2 MB; all rows up to 16 MB with --full."))
    return (score,)


def _left_out(chosen: ValidationSet, rows: Sequence[Row], workers: Workers, progress: Progress | None) -> LeftOut:
    """Judge each configuration with a constant fitted to all others."""
    key, values = chosen.refit or ("", ())
    errors = np.empty((len(values), len(rows)))
    configurations = np.array([case.configuration for case in rows if isinstance(case, Case)])
    for place, value in enumerate(values):
        for row, point in enumerate(workers.answers(point_of, [(case, {key: value}) for case in rows])):
            errors[place, row] = abs(point.error)
            if progress is not None:
                progress(f"{chosen.title}, {key} {value}", row + 1, len(rows))
    found = np.empty(len(rows))
    fitted = []
    for configuration in np.unique(configurations):
        is_left = configurations == configuration
        best = int(errors[:, ~is_left].mean(axis=1).argmin())
        found[is_left] = errors[best, is_left]
        fitted.append(best)
    return LeftOut(
        key=key,
        configurations=len(fitted),
        mape=float(found.mean()),
        values=tuple(values[place] for place in sorted(set(fitted))),
    )


def _naive(chosen: ValidationSet, rows: Sequence[Row]) -> str:
    if chosen.signs is not None:
        return "fabrics do not differ"
    return _NAIVE if all(isinstance(row, Case) for row in rows) else _LINE_RATE


def point_of(asked: tuple[Row, dict[str, str]]) -> Point:
    """Predict a row.

    Parameters
    ----------
    asked : the row, and keys of its scenario to set
    """
    case, overrides = asked
    if isinstance(case, UetRow | SignRow | CurveRow):
        return case.point()
    found = predict(case, overrides)
    return Point(
        name=case.name,
        measured_s=case.measured_s,
        predicted_s=found.iteration_s,
        naive_s=found.peak_s / NAIVE_MFU,
        plan_set=case.plan_set,
        parts_s=found.parts_s,
        labels=(("GPU", case.gpu.name), ("model", case.model.name)),
    )
