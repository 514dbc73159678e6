"""Action and expectation of each check, in words.

A report prints them for a reader who has not read the kit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check: its action with the file, and its expectation."""

    done: str
    wanted: str


CHECKS: Final[dict[str, Check]] = {
    # policies
    "declares_what_comes": Check(
        done="compared PLUGIN and the parameters with the signals of an engine and with the fields that are read",
        wanted="every signal, need and parameter comes and is read, and every field that is read is asked for",
    ),
    "compiled_equals_plain": Check(
        done="called the step as plain Python and as machine code, with the same records",
        wanted="both write the same bits",
    ),
    "no_signal_breaks_the_step": Check(
        done="ran random events of queue pairs: sends, acknowledgements, losses, cuts, timers, idle times",
        wanted="the step raises nothing and writes what an engine can obey",
    ),
    "no_packet_breaks_the_step": Check(
        done="asked for a port for packets and queues drawn at random",
        wanted="the step raises nothing and chooses a candidate",
    ),
    "timers_move_on": Check(done="let every timer fire that the step set", wanted="a timer is set to a later instant"),
    "rate_within_line_rate": Check(
        done="looked at the rate after each signal", wanted="a rate of at most that of the line"
    ),
    "window_within_bounds": Check(
        done="looked at the window after each signal", wanted="at most NO_WINDOW_BYTES, which stands for no window"
    ),
    "no_reaction_to_old_news": Check(
        done="repeated an ACK that acknowledges nothing new", wanted="neither rate nor window rises"
    ),
    "same_signals_same_answers": Check(done="ran the same events twice", wanted="the same answers both times"),
    "only_differences_of_time_count": Check(
        done="ran the same events one second later", wanted="the same rates and windows as before"
    ),
    "keeps_its_path": Check(
        done="sent packets of one flow, two of them at each instant, unless reorders is 'always'",
        wanted="both take one path; with reorders='never' all of them do, so that none overtakes another",
    ),
    "uses_every_candidate": Check(
        done="sent many flows to candidates that differ in nothing", wanted="every candidate is used"
    ),
    "spreads_as_declared": Check(
        done="counted which paths packets take, as the flow engine assumes from PLUGIN's spreads",
        wanted="the packets spread as declared, or spreads=None",
    ),
    # policies in a small network
    "runs_in_a_network": Check(
        done="ran the policy in a small network of 100 Gb/s links", wanted="the run ends without an error of the file"
    ),
    "one_flow_fills_the_link": Check(
        done="sent one long flow over a link of 100 Gb/s and 1 us, for 30 ms",
        wanted="from 20 ms on at least 90 % of the goodput of a flow without a control",
    ),
    "two_flows_share_the_link": Check(
        done="sent two long flows over one link of 100 Gb/s, the second from 1 ms on",
        wanted="from 20 ms on equal shares, a Jain index of 0.95 or more",
    ),
    "two_flows_fill_the_link": Check(
        done="sent two long flows over one link of 100 Gb/s, the second from 1 ms on",
        wanted="from 20 ms on together at least 85 % of the link",
    ),
    "uses_every_uplink": Check(
        done="sent 64 flows from a leaf with four uplinks, with all of them up and with one down",
        wanted="no uplink carries less than a quarter of its share",
    ),
    "leaves_dead_uplinks": Check(
        done="sent 64 flows from a leaf with one of four uplinks down", wanted="no packet is sent to the dead uplink"
    ),
    "everything_arrives": Check(
        done="sent 64 flows from a leaf with four uplinks, with all of them up and with one down",
        wanted="every message arrives",
    ),
    # choices
    "describes_itself": Check(
        done="read the record, its keys and the docstring",
        wanted="a sentence, a source, and for each key a text, a source and a default or what its absence means",
    ),
    "reads_its_keys": Check(
        done="read a scenario that names the file, wrote it out, read it again, and gave each key a wrong value",
        wanted="the scenario reads back as it was, and a wrong value is refused with its line",
    ),
    "builds_a_fabric": Check(
        done="built the fabric twice and looked for paths between all hosts",
        wanted="the same fabric both times, as many hosts as resolve says, all joined",
    ),
    "makes_a_job": Check(
        done="made the job twice from one seed and ran it on the reference engine",
        wanted="the same job both times, a rank for each host, every message arrives and none goes to its sender",
    ),
    "carries_messages": Check(
        done="made the engines' record and sent a permutation among four hosts by it",
        wanted="the record keeps the keys of the scenario, and every message arrives",
    ),
    "computes_the_collective": Check(
        done="ran the programs of all ranks on symbols, without time and without a network",
        wanted="every rank ends with the right pieces, no rank waits for ever, and the messages add up to `traffic`",
    ),
    "does_what_it_offers": Check(
        done="asked for each operation that the file offers, among 2 to 33 ranks", wanted="it can do at least one call"
    ),
    # suspects of an answer
    "names_its_key": Check(
        done="read the record and the docstring",
        wanted="a sentence that says what is suspected, and the key of a scenario that changes it",
    ),
    "suspects_in_words": Check(
        done="asked the file about a small run that has what it needs",
        wanted="suspects with a name, words without placeholders, a key of a scenario, and a bound from 0 to 1",
    ),
    "same_run_same_suspects": Check(
        done="asked twice about one run, and about the same run again", wanted="the same suspects each time"
    ),
    "bound_holds": Check(
        done="ran the small run without each suspect",
        wanted="it ends, and gains no more than bound_share says",
    ),
    "leaves_the_run_as_it_was": Check(
        done="compared the records of the run before and after", wanted="no part of them is changed"
    ),
    "has_a_suspect": Check(
        done="asked about small runs of traffic, collectives and training, on packets and on flows",
        wanted="at least one of them has a suspect, so that something is left out",
    ),
}
