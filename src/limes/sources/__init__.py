"""The classifiers being replaced, each as a source of decision values and gradients."""
