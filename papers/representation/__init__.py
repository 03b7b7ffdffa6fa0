"""*Diffusion representation*: its two examples, its feature maps by series and their bounds."""
