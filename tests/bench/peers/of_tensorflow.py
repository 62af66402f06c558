# SPDX-License-Identifier: Apache-2.0
"""tf.data, in this process and as a service with one worker, over gRPC on the loopback."""

import multiprocessing

import tensorflow as tf

from peers import AREA, ASPECT, BATCH, SIDE


def _image(path):
    encoded = tf.io.read_file(path)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded), tf.zeros([1, 0, 4]), min_object_covered=0.0, aspect_ratio_range=ASPECT,
        area_range=AREA, use_image_if_no_bounding_boxes=True)
    part = tf.concat([begin[:2], size[:2]], axis=0)  # top, left, height, width
    image = tf.image.decode_and_crop_jpeg(encoded, part, channels=3)
    image = tf.image.resize(image, (SIDE, SIDE), method="bilinear", antialias=False)
    return tf.cast(tf.image.random_flip_left_right(image), tf.uint8)


def _dataset(files, threads):
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    images = tf.data.Dataset.from_tensor_slices(files).shuffle(2000).repeat()
    images = images.map(_image, num_parallel_calls=threads, deterministic=False)
    return images.batch(BATCH, drop_remainder=True).with_options(options)


def in_process(files, seconds, threads):
    return _dataset(files, threads).prefetch(2).as_numpy_iterator()


def _serve(address):
    """A dispatcher and a worker, until the process is ended."""
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.partition("://")[2]))
    address.send(dispatcher.target)
    worker.join()


def by_service(files, seconds, threads):
    spawn = multiprocessing.get_context("spawn")
    address, of_server = spawn.Pipe(duplex=False)
    spawn.Process(target=_serve, args=(of_server,), daemon=True).start()
    of_server.close()  # so that its end is seen here
    service = tf.data.experimental.service.distribute(processing_mode="parallel_epochs", service=address.recv())
    return _dataset(files, threads).apply(service).prefetch(2).as_numpy_iterator()
