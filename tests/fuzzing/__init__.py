"""Trials with damaged inputs: every command ends soon, with a sentence or a result, and leaves no half of one."""
