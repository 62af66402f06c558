// SPDX-License-Identifier: Apache-2.0
//
// Commands that write data of their own instead of the coordinator's answer.
#include <optional>
#include <utility>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/file.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/completion.h"
#include "client/cli/commands/inspect.h"
#include "client/cli/convert/convert.h"
#include "client/cli/previews/sequence_sheet.h"
#include "client/cli/previews/sequences.h"
#include "client/cli/previews/sheet.h"
#include "client/cli/previews/vocabulary.h"
#include "client/cli/views/listing.h"
#include "client/cli/views/trace.h"
#include "core/counted.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// A sheet as the bytes of its file.
struct SheetFile {
  std::string bytes;
  size_t rows = 0;
  std::string note, size;  // empty: there is nothing to say
};

std::string SizeOf(const RgbImage& picture) {
  return fmt::format(" ({} x {} pixels)", picture.width, picture.height);
}

absl::StatusOr<SheetFile> ImageSheet(const Rows& rows, const Options& options) {
  if (!options.vocabulary.empty())
    return InvalidArgument(
        "--vocabulary {}: job \"{}\" has no field of tokens here; want one of "
        "whole numbers with one axis, which --field names",
        options.vocabulary, options.name);
  if (options.picture.ends_with(".html"))
    return InvalidArgument("-o {}: a sheet of images is a PNG; want .png",
                           options.picture);
  SheetLayout layout;
  layout.columns = options.columns;
  ASSIGN_OR_RETURN(const Sheet sheet, MakeSheet(rows, options.field, layout));
  ASSIGN_OR_RETURN(std::string png, EncodePng(sheet.picture));
  return SheetFile{std::move(png), sheet.tiles, sheet.note,
                   SizeOf(sheet.picture)};
}

absl::StatusOr<SheetFile> SequenceSheet(const Rows& rows,
                                        const Options& options) {
  std::optional<Vocabulary> vocabulary;
  if (!options.vocabulary.empty()) {
    ASSIGN_OR_RETURN(vocabulary, Vocabulary::Load(options.vocabulary));
  }
  ASSIGN_OR_RETURN(
      const Sequences sequences,
      SequencesOf(rows, options.field,
                  vocabulary.has_value() ? &*vocabulary : nullptr));
  SheetFile file{.rows = sequences.rows.size(), .note = sequences.note};
  if (options.picture.ends_with(".html")) {
    file.bytes = SequencePage(sequences);
    return file;
  }
  const RgbImage picture = DrawSequences(sequences, vocabulary.has_value());
  ASSIGN_OR_RETURN(file.bytes, EncodePng(picture));
  file.size = SizeOf(picture);
  return file;
}

}  // namespace

absl::StatusOr<int> RunSheet(Session& session) {
  const Options& options = session.options();
  const Environment& environment = session.environment();
  if (options.picture == "-" && environment.out_is_terminal) {
    return InvalidArgument(
        "-o -: a picture is not for a terminal; say -o "
        "sheet.png, or redirect");
  }
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  absl::StatusOr<Rows> rows = connection->ReadRows(options.name, options.epoch,
                                                   options.step, options.rows);
  RETURN_IF_ERROR(WithNearNames(rows.status(), connection->admin(),
                                *FindKind("jobs"), options.name));
  ASSIGN_OR_RETURN(const SheetFile sheet, ShowsSequences(*rows, options.field)
                                              ? SequenceSheet(*rows, options)
                                              : ImageSheet(*rows, options));
  if (options.picture == "-") {
    environment.out->write(sheet.bytes.data(),
                           static_cast<std::streamsize>(sheet.bytes.size()));
    environment.out->flush();
    return kGood;
  }
  RETURN_IF_ERROR(WriteFile(options.picture, sheet.bytes));
  session.Say(fmt::format("{}: {} of {} rows of job {}, epoch {}, step {}{}",
                          options.picture, sheet.rows, rows->batch,
                          options.name, rows->epoch, rows->step, sheet.size));
  if (!sheet.note.empty()) session.Say(sheet.note);
  return kGood;
}

absl::StatusOr<int> RunTrace(Session& session) {
  const Options& options = session.options();
  const Environment& environment = session.environment();
  ASSIGN_OR_RETURN(const absl::Duration duration,
                   ParseTimeFlag("--duration", options.duration));
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  const auto consumers = [&]() -> absl::StatusOr<Json> {
    ASSIGN_OR_RETURN(const std::string text,
                     connection->admin().Get("consumers"));
    return ParseObject(text, "consumers");
  };
  Collected collected{.job = options.name};
  ASSIGN_OR_RETURN(collected.before, consumers());
  collected.begin_ns = absl::ToUnixNanos(environment.now());
  absl::StatusOr<std::string> spans =
      connection->CollectSpans(options.name, duration, options.ratio);
  RETURN_IF_ERROR(WithNearNames(spans.status(), connection->admin(),
                                *FindKind("jobs"), options.name));
  collected.end_ns = absl::ToUnixNanos(environment.now());
  ASSIGN_OR_RETURN(collected.after, consumers());
  ASSIGN_OR_RETURN(collected.workers, ParseArray(*spans, "spans"));
  const TraceFile file = MakeTrace(collected);
  if (options.trace == "-")
    *environment.out << file.json << std::flush;
  else
    RETURN_IF_ERROR(WriteFile(options.trace, file.json));
  for (const std::string& error : file.errors) session.Say(error);
  session.Say(fmt::format(
      "{}: {} of {}, {}{}; open it at ui.perfetto.dev", options.trace,
      Counted(file.spans, "span"), Counted(file.workers, "worker"),
      Counted(file.consumers, "consumer"),
      file.dropped > 0
          ? fmt::format("; {} spans found no room: --ratio takes fewer steps",
                        file.dropped)
          : ""));
  if (file.spans == 0)
    session.Say("no rows were computed; is the job running?");
  return kGood;
}

absl::StatusOr<int> RunInspect(Session& session) {
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Inspection inspection, Inspect(session));
    return Session::Result{std::move(inspection.view),
                           inspection.healthy ? kGood : kUnhealthy};
  });
}

absl::StatusOr<int> RunConvert(Session& session) {
  const ConvertOptions& options = session.options().convert;
  ASSIGN_OR_RETURN(const Converted converted, Convert(options));
  session.Say(fmt::format(
      "{}: {}, {}, {}", options.output, Counted(converted.records, "record"),
      Counted(converted.files, "file"), Size(converted.bytes)));
  return kGood;
}

absl::StatusOr<int> RunCompletion(Session& session) {
  const CommandNode root = session.line().Tree();
  const std::string& shell = session.options().shell;
  *session.environment().out << (shell == "bash"  ? BashCompletion(root)
                                 : shell == "zsh" ? ZshCompletion(root)
                                                  : FishCompletion(root))
                             << std::flush;
  return kGood;
}

absl::StatusOr<int> RunVersion(Session& session) {
  *session.environment().out << "leat " << session.environment().version
                             << std::endl;
  return kGood;
}

}  // namespace leat::cli
