"""Parts that policies share: functions of steps, fields of states and rows of parameters, one subject a file."""
