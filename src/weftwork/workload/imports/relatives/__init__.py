"""Relatives of Megatron-LM whose jobs can be imported: each file is a program."""
