"""What a hook, a comment or a transcript says, redacted, as records."""
