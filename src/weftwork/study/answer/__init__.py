"""What a run answers: what it took, what limited it, who is to blame. The rules are in docs/models/answer.md."""
