"""Import and export: what other systems keep as records of ours, and ours in the layouts of others."""
