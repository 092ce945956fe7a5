"""Files: whole writes, locks, and opening only plain files. What every layer that touches the disk uses."""
