"""Training of the embedded signalbox bundle: domain, jailbreak and embedding."""
