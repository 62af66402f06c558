# SPDX-License-Identifier: Apache-2.0
"""Other libraries' readers of the files that reader_bench left in FOLDER, one thread.

    reader_peers.py dali|tfdata FOLDER

measured_cases.h describes the protocol. Shuffled: among 1,024 waiting records, as these libraries do; Leat reads in an
order of all records.
"""

import pathlib
import sys

from asking import measure_cases

RECORDS, BATCH, SHUFFLE = 100_000, 64, 1024
IMAGE, LABEL = "image/encoded", "image/class/label"


def dali(folder):
    from nvidia.dali import Pipeline, fn, tfrecord, types

    features = {
        IMAGE: tfrecord.FixedLenFeature((), tfrecord.string, ""),
        LABEL: tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }
    file = str(folder / "records.tfrecord")
    readers = {
        "tfrecord": lambda **args: fn.readers.tfrecord(
            path=file, index_path=file + ".idx", features=features, **args
        ).values(),
        "tar": lambda **args: fn.readers.webdataset(paths=str(folder / "records.tar"), ext=["jpg", "cls"], **args),
        "lmdb": lambda **args: fn.readers.caffe2(path=str(folder / "lmdb"), **args),
    }

    def case(reader, shuffled):
        built = []

        def once():
            if not built:
                pipe = Pipeline(
                    BATCH, 1, None, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False, exec_dynamic=False
                )
                with pipe:
                    pipe.set_outputs(*reader(random_shuffle=shuffled, initial_fill=SHUFFLE, prefetch_queue_depth=1))
                pipe.build()
                built.append(pipe)
            for _ in range(RECORDS // BATCH):
                built[0].run()
            return RECORDS // BATCH * BATCH

        return once

    return {
        name + (", shuffled" if shuffled else ""): case(reader, shuffled)
        for name, reader in readers.items()
        for shuffled in (False, True)
    }


def tfdata(folder):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    features = {IMAGE: tf.io.FixedLenFeature([], tf.string), LABEL: tf.io.FixedLenFeature([], tf.int64)}

    def case(shuffled):
        options = tf.data.Options()
        options.threading.private_threadpool_size = 1
        records = tf.data.TFRecordDataset(str(folder / "records.tfrecord"), buffer_size=1 << 20)
        if shuffled:
            records = records.shuffle(SHUFFLE)
        batches = records.batch(BATCH).map(lambda batch: tf.io.parse_example(batch, features)).with_options(options)

        def once():
            return sum(int(batch[LABEL].shape[0]) for batch in batches)

        return once

    return {"tfrecord": case(False), "tfrecord, shuffled": case(True)}


if __name__ == "__main__":
    measure_cases({"dali": dali, "tfdata": tfdata}[sys.argv[1]](pathlib.Path(sys.argv[2])))
