"""The catalogue's checks of configuration on a template; nothing here asks AWS."""
