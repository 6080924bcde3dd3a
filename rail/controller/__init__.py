"""The recoverability controller: state features, predictor, replay, fit, deployment."""
