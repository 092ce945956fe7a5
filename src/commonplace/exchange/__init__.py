"""Import the memories of other systems, and export ours in the layouts of those systems."""
