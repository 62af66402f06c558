// SPDX-License-Identifier: Apache-2.0
//
// A photo's seed is mixed from the set's seed and its number. Codings are dealt
// out: of every sixteen photos one has a coding that hardware decoders refuse,
// one is turned, and so on, in an order that differs between sixteens. So a
// small set has all of them, and no class has more of one than another.
#include "tests/support/photos/photo.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tests/support/photos/backdrop.h"
#include "tests/support/photos/shape.h"
#include "tests/support/photos/things.h"

namespace leat::testing {
namespace {

constexpr int kLargestSide = 640;  // in kSizes and between them

struct Family {
  std::string_view name;
  Tint tint;
};
constexpr Family kFamilies[] = {
    {"red", {0, 0.85f, 0.8f}},          {"orange", {0.07f, 0.9f, 0.95f}},
    {"yellow", {0.145f, 0.85f, 0.95f}}, {"green", {0.34f, 0.75f, 0.6f}},
    {"teal", {0.48f, 0.75f, 0.65f}},    {"blue", {0.62f, 0.8f, 0.75f}},
    {"violet", {0.76f, 0.6f, 0.65f}},   {"pink", {0.92f, 0.45f, 0.95f}},
    {"brown", {0.06f, 0.6f, 0.42f}},    {"white", {0.12f, 0.06f, 0.95f}}};
constexpr int kThingCount = static_cast<int>(kThings.size());
constexpr int kFamilyCount = static_cast<int>(std::size(kFamilies));
constexpr int kBackdropCount = static_cast<int>(kBackdrops.size());
static_assert(kMaxClasses == kThingCount * kFamilyCount * kBackdropCount);

// The usual looks and places of a thing: indices of kFamilies and kBackdrops. A
// quarter of the photos differ.
constexpr struct {
  int families[3], backdrops[3];
} kUsual[] = {
    {{0, 5, 2}, {0, 1, 6}},  // ball
    {{9, 5, 0}, {5, 5, 1}},  // boat
    {{0, 5, 9}, {8, 3, 0}},  // car
    {{9, 4, 1}, {4, 6, 4}},  // cup
    {{1, 4, 5}, {5, 8, 5}},  // fish
    {{7, 6, 2}, {0, 7, 2}},  // flower
    {{8, 0, 1}, {0, 2, 9}},  // house
    {{0, 8, 1}, {7, 0, 7}},  // mushroom
    {{3, 3, 2}, {2, 9, 0}},  // tree
    {{6, 7, 0}, {3, 1, 2}},  // umbrella
};
static_assert(std::size(kUsual) == kThings.size());

struct Size {
  int width, height;
};

Size SizeOf(const PhotoSet& set, Random* random) {
  // As common as in collections that people gathered from the web.
  static constexpr Size kSizes[] = {
      {500, 375}, {500, 375}, {500, 375}, {500, 375}, {500, 375}, {500, 333},
      {500, 333}, {500, 334}, {500, 332}, {640, 480}, {400, 300}, {500, 500}};
  Size size = {};
  const int pick = random->Below(16);
  if (pick < static_cast<int>(std::size(kSizes))) {
    size = kSizes[pick];
  } else {
    size.width = 260 + random->Below(kLargestSide - 260 + 1);
    size.height = size.width * (60 + random->Below(41)) / 100;
  }
  if (random->Below(10) < 3) std::swap(size.width, size.height);
  const auto scaled = [&](int side) {
    return std::max(16, side * set.max_side / kLargestSide);
  };
  return {scaled(size.width), scaled(size.height)};
}

// Chooses how the file is coded; see the top of this file.
void DealCoding(const PhotoSet& set, int number, JpegSpec* spec) {
  const int round = number / 16;
  Random deal(Mix(set.seed) ^ Mix(static_cast<uint64_t>(round) << 20));
  const int step = 1 + 2 * deal.Below(8);
  const int slot = (number * step + deal.Below(16)) % 16;
  spec->h = spec->v = 1;
  if (slot >= 12 || slot == 0) spec->h = spec->v = 2;
  if (slot == 0 && round % 3 == 2) {
    spec->h = 4;  // 4:1:1 or 4:1:0
    spec->v = 1 + round / 3 % 2;
  } else if (slot == 0) {
    spec->progressive = true;
  } else if (slot == 1) {
    spec->orientation = 2 + round % 7;
    spec->exif_big_endian = round % 2 == 1;
  } else if (slot == 2) {
    spec->orientation = 1;
  } else if (slot == 3) {
    if (round % 3 == 0) spec->color = JpegColor::kGray;
    if (round % 3 == 1) spec->h = 2;
    if (round % 3 == 2) spec->v = 2;
  } else if (slot == 12) {
    spec->restart_interval = round % 2 == 0 ? 4 : 0;
  }
}

Colour ColourOfFamily(const Family& family, Random* random) {
  const auto near_one = [&] { return random->Within(0.85f, 1.15f); };
  return ColourOf({family.tint.hue + random->Within(-0.022f, 0.022f),
                   std::min(1.0f, family.tint.saturation * near_one()),
                   std::min(1.0f, family.tint.value * near_one())});
}

// The thing, and its position in the picture.
struct Subject {
  Parts parts;
  std::vector<Box> boxes;  // one per part
  Point middle;
  float size;  // the thing's unit, in the picture's
  float sine, cosine;
  float mirror;  // 1 or -1

  Point Inside(Point at) const {
    const float x = (at.x - middle.x) / size, y = (at.y - middle.y) / size;
    return {(x * cosine + y * sine) * mirror, y * cosine - x * sine};
  }
};

// The direction of light, and the effects of light and camera on colours.
struct Light {
  float x, y;       // the direction, of about length one
  float slope;      // how much brighter the picture is on the light's side
  float vignette;   // how much darker the corners are
  Colour exposure;  // factors
  float detail;     // of surfaces, as a fraction of brightness
  float grain, colour_grain;
};

Light LightOf(Random* random) {
  const float turn = random->Within(-0.45f, -0.05f);  // from above
  const float warm = random->Within(-0.07f, 0.07f);
  const float grain = random->Within(0, 1);
  return {.x = CosineOfTurns(turn),
          .y = SineOfTurns(turn),
          .slope = random->Within(0, 0.16f),
          .vignette = random->Within(0, 0.1f),
          .exposure = {1 + warm, 1, 1 - warm},
          .detail = random->Within(0.04f, 0.18f),
          .grain = 4.0f + 17.0f * grain * grain,
          .colour_grain = random->Within(0.3f, 2.0f)};
}

// Paints the thing's colour at a place, over the backdrop.
void PaintThing(const Subject& subject, const Light& light, Point at,
                float pixel, Colour* colour) {
  const Point p = subject.Inside(at);
  if (std::abs(p.x) > 1.3f || std::abs(p.y) > 1.3f) return;
  const Texture& clouds = Textures::Get().clouds;
  const float softness = pixel / subject.size;
  const float rough = 1 + 0.11f * clouds.At(p.x * 140 + 31, p.y * 140 + 77);
  for (size_t i = 0; i < subject.parts.size(); ++i) {
    if (!subject.boxes[i].Has(p, softness)) continue;
    const Part& part = subject.parts[i];
    const float far = part.Distance(p);
    if (far > softness) continue;
    Colour own = Painted(part, p) * rough;
    if (part.round > 0) {
      // A solid turns away from the viewer towards its border.
      const Point from = {p.x - part.points[0].x, p.y - part.points[0].y};
      const float side = from.x * light.x * subject.mirror + from.y * light.y;
      const float edge = std::clamp(1 + far * 3.2f, 0.0f, 1.0f);
      own = own * (1 + part.round * (0.3f * side - 0.38f * edge * edge));
    } else {
      own = own * (1 - 0.12f * p.y);
    }
    const float cover =
        std::clamp(0.5f - far / std::max(softness, 1e-6f), 0.0f, 1.0f);
    *colour = colour->To(own, cover);
  }
}

uint8_t Level(float value) {
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
}

// Returns the colour at a place: the backdrop, the thing's shadow, away from
// the light, and the thing.
Colour Seen(const Backdrop& backdrop, const Subject& subject,
            const Light& light, Point at, float pixel) {
  Colour colour = backdrop.At(at);
  const float x = (at.x - subject.middle.x + light.x * 0.1f) / subject.size;
  const float y = (at.y - subject.middle.y) / subject.size - 0.92f;
  const float shade = x * x + y * y * 14;
  if (shade < 1.2f) colour = colour * (0.58f + 0.35f * shade);
  PaintThing(subject, light, at, pixel, &colour);
  return colour;
}

// Exposes as a camera does: the photo's mean becomes `wanted`, whatever it
// shows.
void Expose(const Backdrop& backdrop, const Subject& subject, Point half,
            float wanted, Light* light) {
  constexpr int kPlaces = 24;  // each way
  float sum = 0;
  for (int y = 0; y < kPlaces; ++y)
    for (int x = 0; x < kPlaces; ++x) {
      const auto place = [](int i) {
        return (static_cast<float>(2 * i + 1) / kPlaces) - 1;
      };
      const Colour seen = Seen(backdrop, subject, *light,
                               {place(x) * half.x, place(y) * half.y}, 0.01f);
      sum += seen.r + seen.g + seen.b;
    }
  const float mean = sum / (3 * kPlaces * kPlaces);
  light->exposure = light->exposure * std::clamp(wanted / mean, 0.5f, 2.0f);
}

void DrawRow(const Photo& photo, const Backdrop& backdrop,
             const Subject& subject, const Light& light, uint64_t grains, int y,
             uint8_t* row) {
  const Textures& textures = Textures::Get();
  const int detail_row = static_cast<int>(grains & 0xFF);
  const float unit =
      2.0f / static_cast<float>(std::min(photo.width, photo.height));
  const float py = (static_cast<float>(y) + 0.5f) * unit -
                   static_cast<float>(photo.height) * unit / 2;
  for (int x = 0; x < photo.width; ++x) {
    const Point at = {(static_cast<float>(x) + 0.5f) * unit -
                          static_cast<float>(photo.width) * unit / 2,
                      py};
    Colour colour = Seen(backdrop, subject, light, at, unit);
    const float rough = textures.grit.Nearest(
        static_cast<float>(x), static_cast<float>(y + detail_row));
    colour = colour * (1 + light.detail * rough);
    const float lit = 1 + light.slope * (at.x * light.x + at.y * light.y) -
                      light.vignette * (at.x * at.x + at.y * at.y);
    const uint64_t bits = Mix(grains + static_cast<uint64_t>(x));
    const auto noise = [&](int shift) {
      return static_cast<float>((bits >> shift & 0xFF) +
                                (bits >> (shift + 8) & 0xFF)) /
                 255.0f -
             1;
    };
    const float grain = light.grain * noise(0);
    const float red = light.colour_grain * noise(16);
    const float blue = light.colour_grain * noise(32);
    row[3 * x] = Level(colour.r * lit * light.exposure.r + grain + red);
    row[3 * x + 1] = Level(colour.g * lit * light.exposure.g + grain);
    row[3 * x + 2] = Level(colour.b * lit * light.exposure.b + grain + blue);
  }
}

// Returns the stored place of an upright one, for each of EXIF's orientations.
Size StoredAt(int orientation, int width, int height, int x, int y) {
  const int right = width - 1 - x, bottom = height - 1 - y;
  switch (orientation) {
    case 2:
      return {right, y};
    case 3:
      return {right, bottom};
    case 4:
      return {x, bottom};
    case 5:
      return {y, x};
    case 6:
      return {y, right};
    case 7:
      return {bottom, right};
    case 8:
      return {bottom, x};
    default:
      return {x, y};
  }
}

}  // namespace

std::string ClassName(const PhotoSet& set, int index) {
  std::string name(kThings[index % kThingCount]);
  if (set.classes > kThingCount)
    name.append("-").append(kFamilies[index / kThingCount % kFamilyCount].name);
  if (set.classes > kThingCount * kFamilyCount)
    name.append("-").append(kBackdrops[index / (kThingCount * kFamilyCount)]);
  return name;
}

Photo DrawPhoto(const PhotoSet& set, int number) {
  const uint64_t seed =
      Mix(Mix(set.seed) + static_cast<uint64_t>(number) * 0x10001);
  Random random(seed);
  Photo photo;
  const Size size = SizeOf(set, &random);
  photo.width = size.width;
  photo.height = size.height;
  photo.spec.quality = random.Below(3) > 0 ? 96 : 80 + random.Below(16);
  DealCoding(set, number, &photo.spec);
  const bool turned = photo.spec.orientation >= 5;
  photo.spec.width = turned ? size.height : size.width;
  photo.spec.height = turned ? size.width : size.height;
  Light light = LightOf(&random);
  const float brightness = random.Within(85, 135);

  const int index = number % set.classes;
  const int thing = index % kThingCount;
  int family = random.Below(kFamilyCount);
  if (random.Below(4) > 0) family = kUsual[thing].families[random.Below(3)];
  int behind = random.Below(kBackdropCount);
  if (random.Below(4) > 0) behind = kUsual[thing].backdrops[random.Below(3)];
  if (set.classes > kThingCount) family = index / kThingCount % kFamilyCount;
  if (set.classes > kThingCount * kFamilyCount)
    behind = index / (kThingCount * kFamilyCount);
  const Backdrop backdrop(behind, &random);
  const float unit =
      2.0f / static_cast<float>(std::min(size.width, size.height));
  const float half_width = static_cast<float>(size.width) * unit / 2;
  const float half_height = static_cast<float>(size.height) * unit / 2;
  Subject subject;
  subject.size = random.Within(0.7f, 0.96f);
  const float free_x = half_width - subject.size;
  const float free_y = half_height - subject.size;
  subject.middle = {random.Within(-free_x, free_x),
                    random.Within(-free_y, free_y)};
  subject.sine = SineOfTurns(random.Within(-0.03f, 0.03f));
  subject.cosine = std::sqrt(1 - subject.sine * subject.sine);
  subject.mirror = random.Coin() ? 1.0f : -1.0f;
  const Colour colour = ColourOfFamily(kFamilies[family], &random);
  subject.parts = PartsOf(thing, colour, &random);
  for (const Part& part : subject.parts) subject.boxes.push_back(part.Bounds());

  Expose(backdrop, subject, {half_width, half_height}, brightness, &light);
  photo.pixels.resize(static_cast<size_t>(size.width) * size.height * 3);
  for (int y = 0; y < size.height; ++y)
    DrawRow(photo, backdrop, subject, light,
            Mix(seed + 1) + (static_cast<uint64_t>(y) << 20), y,
            &photo.pixels[static_cast<size_t>(y) * size.width * 3]);
  return photo;
}

std::string EncodePhoto(const Photo& photo) {
  const JpegSpec& spec = photo.spec;
  if (spec.orientation <= 1) return MakeJpeg(spec, photo.pixels);
  std::vector<uint8_t> stored(photo.pixels.size());
  for (int y = 0; y < photo.height; ++y)
    for (int x = 0; x < photo.width; ++x) {
      const Size at =
          StoredAt(spec.orientation, photo.width, photo.height, x, y);
      std::copy_n(
          &photo.pixels[(static_cast<size_t>(y) * photo.width + x) * 3], 3,
          &stored[(static_cast<size_t>(at.height) * spec.width + at.width) *
                  3]);
    }
  return MakeJpeg(spec, stored);
}

}  // namespace leat::testing
