"""Floor 6: starting files for each policy and choice.

Each comes with the scenario that runs it. ``weftwork new`` copies a pair of them under a user's name. Each is whole and
right as it stands; tests hold it to the conformance kit of its kind. Leaves out: what the best published methods do;
the catalogue has those.
"""
