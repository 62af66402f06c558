# SPDX-License-Identifier: Apache-2.0
"""tf.data: in this process, also with decoded images in memory; and as a service with one worker, over gRPC on the
loopback."""

import multiprocessing

import tensorflow as tf

from peers import AREA, ASPECT, BATCH, SIDE


def _part(shape):
    """Returns top, left, height and width of a random part."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape, tf.zeros([1, 0, 4]), min_object_covered=0.0, aspect_ratio_range=ASPECT, area_range=AREA,
        use_image_if_no_bounding_boxes=True)
    return tf.concat([begin[:2], size[:2]], axis=0)


def _small(image):
    image = tf.image.resize(image, (SIDE, SIDE), method="bilinear", antialias=False)
    return tf.cast(tf.image.random_flip_left_right(image), tf.uint8)


def _image(path):
    encoded = tf.io.read_file(path)
    part = _part(tf.image.extract_jpeg_shape(encoded))
    return _small(tf.image.decode_and_crop_jpeg(encoded, part, channels=3))


def _decoded(path):
    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3)


def _part_of(image):
    top, left, height, width = tf.unstack(_part(tf.shape(image)))
    return _small(tf.image.crop_to_bounding_box(image, top, left, height, width))


def _batches(images, image_of, threads):
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    images = images.shuffle(2000).repeat().map(image_of, num_parallel_calls=threads, deterministic=False)
    return images.batch(BATCH, drop_remainder=True).with_options(options)


def _dataset(files, threads):
    return _batches(tf.data.Dataset.from_tensor_slices(files), _image, threads)


def in_process(files, seconds, threads):
    return _dataset(files, threads).prefetch(2).as_numpy_iterator()


def cached(files, seconds, threads):
    """The first epoch fills the cache before the first batch, since shuffling needs the whole cache."""
    images = tf.data.Dataset.from_tensor_slices(files).map(_decoded, num_parallel_calls=threads).cache()
    return _batches(images, _part_of, threads).prefetch(2).as_numpy_iterator()


def _serve(address):
    """Runs a dispatcher and a worker until the process is ended."""
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.partition("://")[2]))
    address.send(dispatcher.target)
    worker.join()


def by_service(files, seconds, threads):
    spawn = multiprocessing.get_context("spawn")
    address, of_server = spawn.Pipe(duplex=False)
    spawn.Process(target=_serve, args=(of_server,), daemon=True).start()
    of_server.close()  # so that the other end's closing is noticed here
    service = tf.data.experimental.service.distribute(processing_mode="parallel_epochs", service=address.recv())
    return _dataset(files, threads).apply(service).prefetch(2).as_numpy_iterator()
