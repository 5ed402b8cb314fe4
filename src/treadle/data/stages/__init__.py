"""The stages that pipelines are made of, one file per kind."""
