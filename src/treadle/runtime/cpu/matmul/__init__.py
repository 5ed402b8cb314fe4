"""Generated matrix products: register tiles, packing, blocking and the task grid."""
