"""What closed trades teach: post-mortems, recall, calibration, vetoes, lessons."""
