"""Floor 1: the shared language of Weftwork, frozen records and arrays. Siblings above meet here and nowhere else."""
