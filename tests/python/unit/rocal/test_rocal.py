# SPDX-License-Identifier: Apache-2.0
"""leat.rocal over jobs that compute their rows in this process: shards, counting, and refusals."""

import threading

import leat
import leat.rocal.plugin.generic  # its table of hints
import numpy as np
import pytest
from leat.rocal import Pipeline, _checked, fn, pipeline_def, types
from rocal_fakes import SAMPLES, jobs, make  # noqa: F401


class TestCounting:
    def test_a_shard_is_a_contiguous_part(self):
        got = []
        for shard in range(3):
            pipeline = make(batch_size=1, shard_id=shard, num_shards=3)
            while pipeline.rocal_run() == types.OK:
                got.append((shard, int(pipeline.get_output_tensors()[0].at(0)[0])))
        bounds = [SAMPLES * k // 3 for k in range(4)]
        # The shorter shard repeats its last sample, so that all have the same number of batches.
        expected = [(0, i) for i in range(bounds[1])] + [(0, bounds[1] - 1)]
        expected += [(1, i) for i in range(bounds[1], bounds[2])] + [(2, i) for i in range(bounds[2], bounds[3])]
        assert got == expected

    @pytest.mark.parametrize(
        "policy, pad, spec",
        [
            (types.LAST_BATCH_DROP, True, "drop"),
            (types.LAST_BATCH_DROP, False, "drop"),
            (types.LAST_BATCH_FILL, True, "pad"),
            (types.LAST_BATCH_FILL, False, "fill"),
            (types.LAST_BATCH_PARTIAL, True, "partial"),
            (2, True, "partial"),
            (types.LAST_BATCH_MASK, True, "mask"),
        ],
    )
    def test_policies_are_those_of_the_job(self, jobs, policy, pad, spec):
        make(last_batch_policy=policy, pad_last_batch=pad, random_shuffle=True, seed=-1).build()
        (job,) = jobs.values()
        expected = {"batch": 4, "num_parts": 1, "shuffle": "global", "last_batch": spec, "seed": 0}
        assert job.spec == expected

    def test_the_next_epoch_reads_the_next_shard_unless_it_sticks(self, jobs):
        pipeline = make(batch_size=25, num_shards=2, stick_to_shard=False)
        first = pipeline.run()[0].at(0)[0]
        pipeline.rocal_reset_loaders()
        assert (first, pipeline.run()[0].at(0)[0]) == (0, 25)
        make(num_shards=2).build()
        assert [job.spec.get("rotate_parts") for job in jobs.values()] == [True, None]

    @pytest.mark.parametrize("policy, expected", [(types.LAST_BATCH_DROP, 2), (types.LAST_BATCH_FILL, 3)])
    def test_shard_size_shortens_the_epoch(self, policy, expected):
        pipeline = make(batch_size=4, shard_size=10, last_batch_policy=policy)
        steps = 0
        while pipeline.rocal_run() == types.OK:
            steps += 1
        assert steps == expected

    def test_a_shard_size_beyond_the_shard_is_an_error(self):
        with pytest.raises(leat.InvalidArgument, match="shard_size = 26, but a shard of 2 has 25 samples"):
            make(num_shards=2, shard_size=26).run()

    def test_a_shard_without_a_full_batch_is_an_error(self):
        with pytest.raises(leat.InvalidArgument, match="an epoch has no batch.*fewer than 51 samples"):
            make(batch_size=51, last_batch_policy=types.LAST_BATCH_DROP).run()

    def test_partial_batches_have_their_rows_only(self):
        pipeline = make(batch_size=20, last_batch_policy=types.LAST_BATCH_PARTIAL)
        sizes = []
        while pipeline.rocal_run() == types.OK:
            sizes.append((pipeline.get_output_tensors()[0].batch_size(), pipeline.get_last_batch_padded_size()))
        assert sizes == [(20, 0), (20, 0), (10, 10)]

    def test_masked_batches_are_whole_and_the_rows_that_fill_are_counted(self):
        pipeline = make(batch_size=20, last_batch_policy=types.LAST_BATCH_MASK)
        sizes = []
        while pipeline.rocal_run() == types.OK:
            sizes.append((pipeline.get_output_tensors()[0].batch_size(), pipeline.get_last_batch_padded_size()))
        assert sizes == [(20, 0), (20, 0), (20, 10)]

    def test_a_mask_wants_padding_and_whole_batches(self):
        with pytest.raises(leat.InvalidArgument, match="LAST_BATCH_MASK with pad_last_batch = False; expected True"):
            make(last_batch_policy=types.LAST_BATCH_MASK, pad_last_batch=False)
        with pytest.raises(leat.InvalidArgument, match="shard_size = 10 with LAST_BATCH_MASK; expected a multiple"):
            make(last_batch_policy=types.LAST_BATCH_MASK, shard_size=10).run()

    def test_what_a_pipeline_says_about_itself(self):
        pipeline = make(batch_size=20)
        assert (pipeline.get_remaining_images(), pipeline.is_empty(), pipeline._device_id) == (60, False, 0)
        (tensor,) = pipeline.run()
        assert (tensor.dimensions(), tensor.dtype(), len(tensor)) == ([20, 2], "float32", 20)
        assert pipeline.get_image_labels().tolist() == list(range(20))
        assert np.from_dlpack(tensor).tolist() == np.asarray(tensor).tolist()
        assert pipeline.get_remaining_images() == 40
        pipeline.run(), pipeline.run()
        with pytest.raises(StopIteration):
            pipeline.run()
        assert pipeline.is_empty()
        with pytest.raises(leat.Unimplemented, match="get_img_sizes"):
            pipeline.get_img_sizes(None)
        with pytest.raises(AttributeError, match="did you mean 'get_image_labels'"):
            pipeline.get_image_label()


class TestMaking:
    def test_unknown_arguments_are_named(self):
        with pytest.raises(TypeError, match="fn.flip has no argument 'horizontl'; did you mean 'horizontal'"):
            fn.flip(None, horizontl=1)
        with pytest.raises(TypeError, match="no argument 'shard'; did you mean 'shard_id'"):
            fn.readers.cifar10(file_root="/c", shard=1)
        with pytest.raises(TypeError, match="batchsize"):
            pipeline_def(batchsize=3)
        with pytest.raises(TypeError):
            Pipeline(batchsize=3)

    @pytest.mark.parametrize("value", [[], [[]], np.zeros(0), {}, "x"])
    @pytest.mark.parametrize("call", [("brightness_fixed", "brightness_shift"), ("exposure", "exposure"),
                                      ("gamma_correction", "gamma"), ("blur", "sigma")])
    def test_an_odd_value_is_an_error_that_says_the_operator(self, call, value):
        name, argument = call
        with Pipeline(batch_size=2):
            jpegs, _ = fn.readers.file(file_root="/photos")
            image = fn.decoders.image(jpegs, file_root="/photos")
            with pytest.raises((leat.Error, TypeError), match=r"^fn\."):
                getattr(fn, name)(image, **{argument: value})

    def test_hints_are_checked_for_their_type(self):
        with pytest.raises(leat.InvalidArgument, match="antialias = 'yes'; expected True or False"):
            fn.resize(None, resize_width=3, antialias="yes")
        with pytest.raises(leat.InvalidArgument, match="Pipeline: max_streams = 'all'; expected a number"):
            Pipeline(max_streams="all")

    @pytest.mark.parametrize("name", sorted(_checked.REFUSED))
    def test_what_leat_has_not_says_so(self, name):
        function = fn
        for part in name.split(".")[1:]:
            function = getattr(function, part)
        with pytest.raises(leat.Unimplemented, match=name):
            function(1, anything=2)

    def test_what_rocal_has_not_either_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="no 'brightnes'; did you mean 'brightness'"):
            fn.brightnes  # noqa: B018

    def test_readers_belong_into_a_pipeline(self):
        with pytest.raises(leat.FailedPrecondition, match="with pipeline:"):
            fn.readers.file(file_root="/photos")
        with Pipeline(batch_size=2):
            fn.readers.file(file_root="/photos")
            with pytest.raises(leat.Unimplemented, match="one reader"):
                fn.readers.file(file_root="/photos")

    def test_a_pipeline_that_is_not_finished_says_what_it_lacks(self):
        with pytest.raises(leat.InvalidArgument, match="batch_size = -1"):
            Pipeline().build()
        with pytest.raises(leat.InvalidArgument, match="no reader"):
            Pipeline(batch_size=2).build()
        pipeline = Pipeline(batch_size=2)
        with pipeline:
            jpegs, _ = fn.readers.file(file_root="/photos")
            with pytest.raises(leat.InvalidArgument, match="fn.decoders.image decodes it"):
                pipeline.set_outputs(jpegs)
            with pytest.raises(leat.InvalidArgument, match="fn.decoders.image decodes it"):
                fn.resize(jpegs, resize_width=3)
        with pytest.raises(leat.InvalidArgument, match="no outputs"):
            pipeline.build()

    def test_decoders_say_which_part_is_read(self, jobs):
        pipeline = Pipeline(batch_size=5)
        with pipeline:
            jpegs, _ = fn.readers.file(file_root="/photos")
            images = fn.decoders.image(jpegs, file_root="/photos/", shard_id=1, num_shards=5, last_batch_policy=1)
            pipeline.set_outputs(images)
            with pytest.raises(leat.InvalidArgument, match="only reader reads one part"):
                fn.decoders.image(jpegs, file_root="/photos", shard_id=2, num_shards=5)
            with pytest.raises(leat.InvalidArgument, match="file_root = '/others', but fn.readers.file has '/photos'"):
                fn.decoders.image(jpegs, file_root="/others", shard_id=1, num_shards=5)
        assert pipeline.run()[0].at(0)[0] == 10

    def test_a_shard_that_there_is_not(self):
        with pytest.raises(
            leat.InvalidArgument, match="shard_id, of 2 shards, = 2; expected a whole number from 0 to 1"
        ):
            make(shard_id=2, num_shards=2)

    def test_pipeline_def(self):
        @pipeline_def(batch_size=4, seed=9)
        def images(root, shard_id):
            jpegs, _ = fn.readers.file(file_root=root)
            return fn.decoders.image(jpegs, shard_id=shard_id, num_shards=2)

        pipeline = images("/photos", shard_id=1, batch_size=5)
        assert (pipeline._batch_size, pipeline._seed, pipeline._source.sharding.shard_id) == (5, 9, 1)
        assert pipeline.run()[0].at(0)[0] == 25
        with pytest.raises(TypeError, match="no argument 'shardid'"):
            images("/photos", shardid=1)
        with pytest.raises(TypeError, match="variadic"):
            pipeline_def(lambda **kwargs: None)


def test_threads_make_pipelines_of_their_own():
    """Operators that a thread calls within `with pipeline:` belong to that pipeline, whatever other threads do."""
    first, second = Pipeline(batch_size=1), Pipeline(batch_size=1)
    inside, seen = threading.Barrier(2, timeout=60), {}

    def make(pipeline):
        with pipeline:
            inside.wait()  # both threads are inside
            seen[pipeline] = Pipeline.current("here")
            inside.wait()

    thread = threading.Thread(target=make, args=(second,))
    thread.start()
    make(first)
    thread.join()
    assert seen == {first: first, second: second}
    with pytest.raises(leat.FailedPrecondition, match="here outside of a pipeline"):
        Pipeline.current("here")
