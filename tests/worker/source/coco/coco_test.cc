// SPDX-License-Identifier: Apache-2.0
#include "worker/source/coco/coco.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/coco/mask.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;
using Texts = std::vector<std::string>;
using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

constexpr char kCategories[] = R"([{"id": 18, "name": "dog"}, {"id": 3}])";
constexpr char kImages[] =
    R"([{"id": 20, "file_name": "b.jpg", "height": 10, "width": 20},
        {"license": 4, "file_name": "sub/a.jpg", "width": 4.0, "height": 6,
         "id": 7e0, "flickr": {"id": 1, "more": [[1], {}]}},
        {"id": 9, "file_name": "c.jpg", "height": 3, "width": 3}])";
// Image 7 has a square of label 1 and a crowd of label 2; image 20 has an
// object that is too small, and one of two triangles.
constexpr char kAnnotations[] =
    R"([{"id": 1, "image_id": 7, "category_id": 18, "bbox": [1, 2.5, 2, 3],
         "iscrowd": 0, "area": 6.5, "segmentation": [[1, 2, 3, 2, 3, 5, 1, 5]]},
        {"segmentation": {"size": [6.0, 4], "counts": [0, 3.0, 21]},
         "iscrowd": 1.0, "id": 2, "image_id": 7.0, "category_id": 3.0,
         "bbox": [0, 0, 1, 3]},
        {"id": 3, "image_id": 20, "category_id": 3, "bbox": [0, 0, 0.05, 9],
         "segmentation": []},
        {"id": 4, "image_id": 20, "category_id": 3, "bbox": [5, 5, 10, 5],
         "segmentation": [[5, 5, 15, 5, 15, 10], [5, 6, 5, 10, 9, 10]]}])";

std::string File(const std::string& annotations = kAnnotations,
                 const std::string& images = kImages,
                 const std::string& categories = kCategories) {
  return fmt::format(
      R"({{"info": {{"images": [1]}}, "annotations": {}, "images": {}, )"
      R"("categories": {}, "licenses": [{{"id": 1}}]}})",
      annotations, images, categories);
}

class CocoTest : public ::testing::Test {
 protected:
  CocoTest() {
    dir_.Write("photos/sub/a.jpg", "first");
    dir_.Write("photos/b.jpg", "second");
    dir_.Write("photos/c.jpg", "");
  }
  Node Reader(const std::string& json,
              std::map<std::string, Value> args = {}) const {
    args["annotations"] = dir_.Write("all.json", json);
    args["root"] = dir_.path() + "/photos";
    return {.op = "readers.coco", .inputs = {}, .args = std::move(args)};
  }
  absl::StatusOr<std::unique_ptr<Source>> Open(const Node& reader) const {
    ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader, limits_));
    ASSIGN_OR_RETURN(auto source, OpenSource(reader, index.blob, limits_));
    EXPECT_EQ(source->fingerprint(), index.fingerprint);
    EXPECT_EQ(source->num_samples(), index.shards.num_samples());
    return source;
  }
  std::vector<StoredSample> Samples(std::map<std::string, Value> args = {},
                                    const std::string& json = File()) const {
    const auto source = Open(Reader(json, std::move(args)));
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<StoredSample> samples;
    for (uint64_t i = 0; source.ok() && i < (*source)->num_samples(); ++i) {
      auto sample = (*source)->Read(i);
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (sample.ok()) samples.push_back(*std::move(sample));
    }
    return samples;
  }
  std::string Refused(const std::string& json,
                      std::map<std::string, Value> args = {}) const {
    return std::string(Message(Open(Reader(json, std::move(args))).status()));
  }
  // Returns the refusal of one annotation.
  std::string RefusedOne(const std::string& annotation) const {
    return Refused(File("[" + annotation + "]"),
                   {{"outputs", Texts{"image", "mask"}}});
  }

  TempDir dir_;
  SourceLimits limits_;
};

TEST_F(CocoTest, ImagesComeByTheirIdsWithTheirObjects) {
  const auto samples = Samples();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(TextOf(samples[0].fields[0]), "first");
  EXPECT_EQ(ValuesOf<float>(samples[0].fields[1]),
            (Floats{1, 2.5, 2, 3, 0, 0, 1, 3}));
  EXPECT_EQ(samples[0].fields[1].shape, (Shape{2, 4}));
  EXPECT_EQ(ValuesOf<int32_t>(samples[0].fields[2]), (Ints{1, 2}));
  EXPECT_EQ(samples[0].fields[2].shape, (Shape{2}));
  EXPECT_EQ(TextOf(samples[1].fields[0]), "");
  EXPECT_EQ(samples[1].fields[1].shape, (Shape{0, 4}));
  EXPECT_EQ(samples[1].fields[2].shape, (Shape{0}));
  EXPECT_EQ(TextOf(samples[2].fields[0]), "second");
  EXPECT_EQ(ValuesOf<float>(samples[2].fields[1]), (Floats{5, 5, 10, 5}));
  EXPECT_EQ(ValuesOf<int32_t>(samples[2].fields[2]), (Ints{2}));
}

TEST_F(CocoTest, ArgumentsSayWhichObjectsAndHow) {
  const auto boxes = [](const StoredSample& sample) {
    return ValuesOf<float>(sample.fields[0]);
  };
  const Value just_boxes = Texts{"boxes"};
  auto samples = Samples({{"outputs", just_boxes}, {"ltrb", true}});
  EXPECT_EQ(boxes(samples[0]), (Floats{1, 2.5, 3, 5.5, 0, 0, 1, 3}));
  samples = Samples({{"outputs", just_boxes}, {"ltrb", true}, {"ratio", true}});
  EXPECT_EQ(boxes(samples[2]), (Floats{0.25, 0.5, 0.75, 1}));
  samples = Samples({{"outputs", just_boxes}, {"include_iscrowd", false}});
  EXPECT_EQ(boxes(samples[0]), (Floats{1, 2.5, 2, 3}));
  samples = Samples({{"outputs", just_boxes}, {"size_threshold", 3.0}});
  EXPECT_THAT(boxes(samples[0]), IsEmpty());
  samples = Samples({{"outputs", just_boxes}, {"size_threshold", 0.0}});
  EXPECT_EQ(samples[2].fields[0].shape, (Shape{2, 4}));
  samples = Samples({{"outputs", Texts{"labels", "image_id"}},
                     {"avoid_class_remapping", true},
                     {"skip_empty", true}});
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(ValuesOf<int32_t>(samples[0].fields[0]), (Ints{18, 3}));
  EXPECT_THAT(ValuesOf<int64_t>(samples[1].fields[1]), ElementsAre(20));
}

TEST_F(CocoTest, NamedImagesComeInTheirOrder) {
  const auto samples =
      Samples({{"outputs", Texts{"image_id", "image"}},
               {"images", Texts{"b.jpg", "sub/a.jpg", "b.jpg"}}});
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_THAT(ValuesOf<int64_t>(samples[0].fields[0]), ElementsAre(20));
  EXPECT_EQ(TextOf(samples[1].fields[1]), "first");
  EXPECT_EQ(TextOf(samples[2].fields[1]), "second");
  EXPECT_THAT(Refused(File(), {{"images", Texts{"d.jpg"}}}),
              HasSubstr("all.json: it has no image \"d.jpg\""));
}

TEST_F(CocoTest, PolygonsSayWhoseTheyAreAndWhereTheirVerticesLie) {
  const Value outputs = Texts{"vertices", "polygons"};
  auto samples = Samples({{"outputs", outputs}});
  EXPECT_EQ(ValuesOf<int32_t>(samples[0].fields[1]), (Ints{0, 0, 4}));
  EXPECT_EQ(samples[1].fields[0].shape, (Shape{0, 2}));
  EXPECT_EQ(samples[1].fields[1].shape, (Shape{0, 3}));
  EXPECT_EQ(ValuesOf<float>(samples[2].fields[0]),
            (Floats{5, 5, 15, 5, 15, 10, 5, 6, 5, 10, 9, 10}));
  EXPECT_EQ(samples[2].fields[0].shape, (Shape{6, 2}));
  EXPECT_EQ(ValuesOf<int32_t>(samples[2].fields[1]), (Ints{0, 0, 3, 0, 3, 6}));
  samples = Samples({{"outputs", outputs}, {"ratio", true}});
  EXPECT_EQ(ValuesOf<float>(samples[0].fields[0])[7], 5.0f / 6.0f);
}

TEST_F(CocoTest, MasksHaveTheLabelOfEachPixel) {
  const auto samples = Samples({{"outputs", Texts{"mask"}}});
  EXPECT_EQ(samples[0].fields[0].shape, (Shape{6, 4, 1}));
  EXPECT_EQ(ValuesOf<int32_t>(samples[0].fields[0]), (Ints{2, 0, 0, 0,  //
                                                           2, 0, 0, 0,  //
                                                           2, 1, 1, 0,  //
                                                           0, 1, 1, 0,  //
                                                           0, 1, 1, 0,  //
                                                           0, 0, 0, 0}));
  EXPECT_EQ(ValuesOf<int32_t>(samples[1].fields[0]), Ints(9, 0));
}

TEST(CocoRuns, TextsAreRunsOfSixBitsACharacter) {
  // From the fourth on, minus the one before the last: 4 - 1, 5 - 40.
  const auto runs = ParseCocoRuns("61X13mN");
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT(*runs, ElementsAre(6, 1, 40, 4, 5));
  EXPECT_THAT(*ParseCocoRuns(""), IsEmpty());
  for (const char* text : {"X", "6\x7f", "6 ", "00000N", "XXXXXXXXX1"})
    EXPECT_FALSE(ParseCocoRuns(text).ok()) << text;
}

TEST(CocoTypes, AreThoseOfTheOutputsAsked) {
  Graph graph;
  graph.nodes = {{"readers.coco",
                  {},
                  {{"annotations", Value(std::string("/x.json"))},
                   {"outputs", Texts{"mask", "boxes", "image_id", "labels"}}}},
                 {"pad",
                  {{0, 1}},
                  {{"axes", std::vector<int64_t>{0}},
                   {"shape", std::vector<int64_t>{100}}}},
                 {"length", {{0, 1}}, {}}};
  graph.outputs = {{"boxes", {1, 0}}, {"count", {2, 0}}, {"id", {0, 2}}};
  const auto checked = Check(graph);
  ASSERT_TRUE(checked.ok()) << checked.status();
  const std::vector<Field>& fields = checked->schema.fields;
  EXPECT_EQ(fields[0], (Field{"boxes", DType::kFloat32, {100, 4}, 1600}));
  EXPECT_EQ(fields[1], (Field{"count", DType::kInt32, {}, 4}));
  EXPECT_EQ(fields[2], (Field{"id", DType::kInt64, {}, 8}));

  const auto refusal = [](const Graph& wrong) {
    return std::string(Message(Check(wrong).status()));
  };
  Graph open = graph;
  open.outputs = {{"boxes", {0, 1}}};
  EXPECT_THAT(refusal(open), HasSubstr("float32 (?, 4), whose size differs "
                                       "from sample to sample; want one size: "
                                       "resize, crop or pad it"));
  Graph twice = graph;
  twice.nodes[0].args["outputs"] = Texts{"boxes", "boxes", "labels"};
  EXPECT_THAT(refusal(twice), HasSubstr("\"boxes\" twice"));
  twice.nodes[0].args["outputs"] = Texts{"boxes", "area", "labels"};
  EXPECT_THAT(refusal(twice), HasSubstr("area"));
  twice.nodes[0].args["outputs"] = Texts{};
  EXPECT_THAT(refusal(twice), HasSubstr("is empty"));
}

TEST_F(CocoTest, WhatIsWrongIsNamed) {
  const auto one = [&](const char* annotation) {
    return RefusedOne(annotation);
  };
  constexpr char kStart[] = R"({"id": 5, "image_id": 7, "category_id": 3, )";
  const auto of = [&](const std::string& rest) {
    return RefusedOne(kStart + rest + "}");
  };
  const std::string box = R"("bbox": [0, 0, 1, 1], )";
  EXPECT_THAT(of(R"("bbox": [0, 0, -1, 1], "segmentation": [])"),
              HasSubstr("all.json: annotation 5: bbox: [0, 0, -1, 1], want a "
                        "width and a height of 0 or more"));
  EXPECT_THAT(of(R"("bbox": [0, 0, NaN, 1], "segmentation": [])"),
              HasSubstr("all.json: annotation 5: no JSON at byte"));
  EXPECT_THAT(of(R"("bbox": [0, 0, 1e300, 1], "segmentation": [])"),
              HasSubstr("bbox: 1e+300, want a number that float32 holds"));
  EXPECT_THAT(of(R"("bbox": [0, 0, null, 1], "segmentation": [])"),
              HasSubstr("bbox: null, want"));
  EXPECT_THAT(of(R"("bbox": [0, 0, 1], "segmentation": [])"),
              HasSubstr("bbox: 3 numbers, want 4"));
  EXPECT_THAT(of(R"("bbox": {}, "segmentation": [])"),
              HasSubstr("bbox: 0 numbers, want 4"));
  EXPECT_THAT(of(R"("bbox": [[0, 0, 1, 1]], "segmentation": [])"),
              HasSubstr("annotation 5: a list among numbers"));
  EXPECT_THAT(of(R"("segmentation": [])"), HasSubstr("bbox: 0 numbers"));
  EXPECT_THAT(of(R"("bbox": [0, 0, 1, 1])"), HasSubstr("no segmentation"));
  EXPECT_THAT(of(box + R"("segmentation": [[1, 2, 3]])"),
              HasSubstr("segmentation: a polygon of 3 numbers, want pairs"));
  EXPECT_THAT(of(box + R"("segmentation": [1, 2])"),
              HasSubstr("segmentation: 1, want a list of numbers"));
  EXPECT_THAT(of(box + R"("segmentation": [[1, 2, 1e9, 3]])"),
              HasSubstr("segmentation: vertex (1000000000, 3) is far outside"));
  EXPECT_THAT(of(box + R"("iscrowd": 2, "segmentation": [])"),
              HasSubstr("iscrowd: 2, want 0 or 1"));
  const auto runs = [&](const char* counts) {
    return of(fmt::format(
        R"({}"segmentation": {{"counts": {}, "size": [6, 4]}})", box, counts));
  };
  EXPECT_THAT(runs("[1, 2, 3]"),
              HasSubstr("annotation 5: segmentation: counts: they sum up to "
                        "6, want the 24 pixels of 6 x 4"));
  EXPECT_THAT(runs("\"!\""), HasSubstr("no run-length text at its character"));
  EXPECT_THAT(runs("[-1, 25]"), HasSubstr("-1, want a whole number of 0 to"));
  EXPECT_THAT(runs("3"), HasSubstr("counts: 3, want a text or a list"));
  EXPECT_THAT(of(box + R"("segmentation": {"counts": [1]})"),
              HasSubstr("size: [], want a height and a width"));
  EXPECT_THAT(of(box + R"("segmentation": {"counts": [9], "size": [3, 3]})"),
              HasSubstr("size: [3, 3], want the image's height and width, "
                        "[6, 4]"));
  EXPECT_THAT(one(R"({"id": 6, "image_id": 8, "category_id": 3,
                      "bbox": [0, 0, 1, 1], "segmentation": []})"),
              HasSubstr("annotation 6: image_id: 8, want the id of one of the "
                        "3 images"));
  EXPECT_THAT(one(R"({"image_id": 7, "category_id": 4,
                      "bbox": [0, 0, 1, 1], "segmentation": []})"),
              HasSubstr("annotations[0]: category_id: 4, want the id of one of "
                        "the 2 categories"));
  EXPECT_THAT(one(R"({"id": "x", "image_id": 7})"),
              HasSubstr("id: a text of 1 bytes, want a whole number"));
  EXPECT_THAT(one(R"({"id": 5, "image_id": 7})"), HasSubstr("no category_id"));
  EXPECT_THAT(one(R"({"id": 6, "image_id": 7.5})"),
              HasSubstr("image_id: 7.5, want a whole number"));
  EXPECT_THAT(one(R"({"id": 6, "image_id": 1e16})"),
              HasSubstr("image_id: 1e+16, want a whole number"));
  EXPECT_THAT(one("7"), HasSubstr("annotations[0]: 7, want an object"));
}

TEST_F(CocoTest, WhatIsWrongWithImagesAndListsIsNamed) {
  const auto images = [&](const char* images) {
    return Refused(File("[]", images), {{"ratio", true}});
  };
  for (const char* name : {"/etc/passwd", "../a.jpg", "a/../b.jpg", ""})
    EXPECT_THAT(
        images(
            fmt::format(R"([{{"file_name": "{}", "id": 3}}])", name).c_str()),
        HasSubstr(fmt::format("image 3: file_name: a text of {} bytes, want a "
                              "path below root",
                              std::string_view(name).size())));
  EXPECT_THAT(images(R"([{"id": 3}])"),
              HasSubstr("all.json: image 3: it has no file_name"));
  EXPECT_THAT(images(R"([{"file_name": "b.jpg"}])"),
              HasSubstr("images[0]: it has no id"));
  EXPECT_THAT(images(R"([{"id": 3, "file_name": "b.jpg", "width": 0}])"),
              HasSubstr("width: 0, want a whole number of 1 to"));
  EXPECT_THAT(images(R"([{"id": 3, "file_name": "b.jpg", "width": 9}])"),
              HasSubstr("image 3: it has no height and width"));
  EXPECT_THAT(images(R"([{"id": 3, "file_name": "b.jpg"},
                         {"id": 3, "file_name": "c.jpg"}])"),
              HasSubstr("image 3: there are two of this id"));
  EXPECT_THAT(images(R"([[]])"),
              HasSubstr("images[0]: a list, want an object"));
  EXPECT_THAT(images("{}"), HasSubstr("images: an object, want a list"));
  EXPECT_THAT(images("3"), HasSubstr("images: 3, want a list"));
  EXPECT_THAT(images("[]"), HasSubstr("no records"));
  EXPECT_THAT(Refused(File("[]", R"([{"id": 3, "file_name": "gone.jpg"}])")),
              HasSubstr("image 3: "));
  EXPECT_THAT(Refused(File("[]", kImages, R"([{"id": 3}, {"id": 3}])")),
              HasSubstr("category 3: there are two"));
  EXPECT_THAT(Refused(File("[]", kImages, R"([{"name": "x"}])")),
              HasSubstr("categories[0]: it has no id"));
  EXPECT_THAT(Refused(R"({"images": []})"),
              HasSubstr("it has no list \"annotations\""));
  EXPECT_THAT(Refused(R"({"annotations": []})"), HasSubstr("list \"images\""));
  EXPECT_THAT(Refused(R"({"images": [], "images": []})"),
              HasSubstr("two lists \"images\""));
  EXPECT_THAT(Refused(R"({"annotations": )" + std::string(kAnnotations) +
                      R"(, "images": )" + kImages + "}"),
              HasSubstr("it has no list \"categories\""));
  EXPECT_THAT(Refused("[]"), HasSubstr("a list, want an object"));
  EXPECT_THAT(Refused(""), HasSubstr("no JSON at byte"));
  EXPECT_THAT(Refused("root:secret:19000::"), Not(HasSubstr("secret")));
  EXPECT_THAT(Refused("\"a secret"), Not(HasSubstr("secret")));
  EXPECT_THAT(Refused(File() + "x"), HasSubstr("no JSON at byte"));
  EXPECT_THAT(Refused(File(), {{"outputs", Texts{"box"}}}),
              HasSubstr("outputs: no \"box\""));
}

TEST_F(CocoTest, TwoAnnotationsOfOneIdAreAnError) {
  std::string twice = kAnnotations;
  twice.replace(twice.find("\"id\": 2"), 7, "\"id\": 1");
  EXPECT_THAT(Refused(File(twice)),
              HasSubstr("annotation 1: there are two of this id"));
}

TEST_F(CocoTest, WhatIsKeptIsBounded) {
  limits_.max_index_bytes = 100;
  EXPECT_TRUE(absl::IsResourceExhausted(Open(Reader(File())).status()));
  limits_.max_index_bytes = 2000;
  std::string many;
  for (int i = 0; i < 300; ++i) many += "1,2,";
  EXPECT_THAT(Refused(File(R"([{"segmentation": [[)" + many + "3,4]]}]"),
                      {{"outputs", Texts{"polygons"}}}),
              HasSubstr("more than 2000 bytes are to be kept"));
  limits_ = {};
  limits_.max_file_bytes = 3;
  EXPECT_TRUE(
      absl::IsResourceExhausted((*Open(Reader(File())))->Read(0).status()));
}

TEST_F(CocoTest, AFileIsReadInWindows) {
  std::string images, annotations;
  for (int i = 0; i < 30'000; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    images += fmt::format(R"({}{{"id":{},"file_name":"b.jpg"}})", comma, i);
    annotations += fmt::format(
        R"({}{{"id":{},"image_id":{},"category_id":3,"bbox":[{},1,2,3.5]}})",
        comma, i, i, i);
  }
  const auto source =
      Open(Reader(File("[" + annotations + "]", "[" + images + "]"),
                  {{"outputs", Texts{"boxes"}}}));
  ASSERT_TRUE(source.ok()) << source.status();
  for (const int i : {0, 12'345, 29'999}) {
    const auto sample = (*source)->Read(i);
    EXPECT_EQ(ValuesOf<float>(sample->fields[0]),
              (Floats{static_cast<float>(i), 1, 2, 3.5}));
  }
}

TEST_F(CocoTest, FingerprintTellsBoxesPhotosAndOrder) {
  const auto of = [&](const std::string& json,
                      std::map<std::string, Value> args = {}) {
    return (*Open(Reader(json, std::move(args))))->fingerprint();
  };
  const Digest digest = of(File());
  EXPECT_EQ(of(File()), digest);
  std::string moved = kAnnotations;
  moved.replace(moved.find("2.5"), 3, "2.6");
  EXPECT_NE(of(File(moved)), digest);
  EXPECT_NE(of(File(), {{"skip_empty", true}}), digest);
  dir_.Write("photos/b.jpg", "longer than it was");
  EXPECT_NE(of(File()), digest);
}

TEST_F(CocoTest, APhotoThatChangedIsAnErrorThatNamesIt) {
  const auto source = Open(Reader(File()));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Describe(2), dir_.path() + "/photos/b.jpg (image 20)");
  EXPECT_EQ((*source)->Locate(2)->file, dir_.path() + "/photos/b.jpg");
  EXPECT_EQ((*source)->Locate(2)->key, "20");
  dir_.Write("photos/b.jpg", "longer than it was");
  const absl::Status changed = (*source)->Read(2).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(changed)) << changed;
  EXPECT_THAT(std::string(Message(changed)), HasSubstr("b.jpg"));
}

TEST_F(CocoTest, DamagedFilesAreErrorsOrReadable) {
  const google::protobuf::LogSilencer silent;
  limits_.listing_threads = 1;
  const std::map<std::string, Value> args = {
      {"outputs", Texts{"boxes", "labels", "polygons", "vertices", "mask"}}};
  Damage(File(), 1000, [&](const std::string& json) {
    ReadDamaged(Open(Reader(json, args)));
  });
  const Node reader = Reader(File(), args);
  const auto index = BuildIndex(reader, limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Reader(File()), index->blob, limits_).status()));
}

}  // namespace
}  // namespace leat::worker
