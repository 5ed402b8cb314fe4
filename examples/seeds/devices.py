"""Devices: which there are, which a program sees, and several logical ones on one processor."""

import treadle as tf


def main():
    processors = tf.config.experimental.list_physical_devices(device_type="CPU")
    gpus = tf.config.experimental.list_physical_devices("GPU")
    print(processors, gpus)
    assert len(processors) == 1 and processors[0].device_type == "CPU"
    tf.config.experimental.set_visible_devices(devices=gpus[:2], device_type="GPU")
    assert tf.config.get_visible_devices("GPU") == gpus[:2]
    for gpu in gpus[:2]:
        tf.config.experimental.set_memory_growth(gpu, True)

    # A machine with one device is tried as one with two.
    part = tf.config.experimental.VirtualDeviceConfiguration
    tf.config.experimental.set_virtual_device_configuration(processors[0], [part(), part()])
    names = [device.name for device in tf.config.experimental.list_logical_devices("CPU")]
    assert names == ["/device:CPU:0", "/device:CPU:1"]
    strategy = tf.distribute.MirroredStrategy(names)
    assert strategy.num_replicas_in_sync == 2
    print("Number of devices:", strategy.num_replicas_in_sync)
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def add():
        total.assign_add(1.0 + tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group,
                                       tf.float32))

    strategy.run(add)
    assert float(total) == 3.0


if __name__ == "__main__":
    main()
