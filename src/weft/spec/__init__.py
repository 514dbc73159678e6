"""Floor 1: the shared language of Weft, frozen records and arrays. Siblings above meet here and nowhere else."""
