"""What independent runs agree on, where no factors are known to compare with."""
