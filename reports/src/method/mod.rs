//! What every term means and where it comes from: `templates/method.html` and the limits that the figures rest on.
