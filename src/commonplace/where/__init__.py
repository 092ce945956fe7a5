"""Where things are: which repository a folder belongs to, which homes apply there, and what lies where in one."""
