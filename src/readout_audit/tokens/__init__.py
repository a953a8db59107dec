"""What a tokenizer makes of the words yes and no."""
