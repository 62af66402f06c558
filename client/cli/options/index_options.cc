// SPDX-License-Identifier: Apache-2.0
//
// Commands that show datasets, rows, and the time of single steps.
#include "client/cli/options/command_line_state.h"

namespace leat::cli {

// Adds options that describe a dataset's reader, and the program that lists it.
void CommandLine::State::AddReader(CLI::App* command) {
  Add(command, "--format", options.format, "FORMAT",
      "a reader's name without \"readers.\"; the default follows from names "
      "and first bytes");
  Add(command, "--arg", options.reader_args, "NAME=VALUE",
      "an argument of the reader, of a list one value; may be given several "
      "times")
      ->allow_extra_args(false);
  Add(command, "--daemon-dir", options.daemon_dir, "FOLDER",
      "folder of leat-worker, which lists; default: leat's own, then PATH",
      Files());
}

void CommandLine::State::AddVocabulary(CLI::App* command) {
  Add(command, "--vocabulary", options.vocabulary, "FILE",
      "JSON file of a tokenizer, as Hugging Face's tokenizers write it: shows "
      "tokens as text",
      Files());
}

void CommandLine::State::AddSheet() {
  CLI::App* sheet =
      Command("sheet", "Picture of what the trainer sees at a step",
              "  leat sheet resnet50 -o sheet.png\n"
              "  leat sheet resnet50 --step 120 --rows 64\n"
              "  leat sheet llm --vocabulary tokenizer.json -o rows.html\n");
  Word(sheet, "JOB", options.name, "the job", Names("jobs"));
  Add(sheet, "--step", options.step, "S", "step, from 0")->check(NotNegative());
  Add(sheet, "--epoch", options.epoch, "E", "epoch, from 0")
      ->check(NotNegative());
  Add(sheet, "--rows", options.rows, "N", "rows drawn, 1 to 256")
      ->check(Between(1, 256));
  Add(sheet, "--columns", options.columns, "N", "images a line, 1 to 64")
      ->check(Between(1, 64));
  Add(sheet, "--field", options.field, "NAME",
      "field that is drawn, an image or a sequence; default: the first image, "
      "or else the first sequence");
  Add(sheet, "-o,--output", options.picture, "FILE",
      "file, of sequences also .html; - is stdout (sheet.png)", Files());
  AddVocabulary(sheet);
}

void CommandLine::State::AddInspect() {
  CLI::App* inspect = Command(
      "inspect",
      "Describe a file or folder: an image, a position, a dataset, a pipeline",
      "  leat inspect photo.jpg\n"
      "  leat inspect /data/train -o json\n"
      "  leat inspect train-000.tar\n"
      "  leat inspect 's3://bucket/train-*.tfrecord'\n"
      "  leat inspect web.bin --row-length 4096 --vocabulary tokenizer.json\n"
      "  leat describe job llm -o json > llm.json; leat inspect llm.json\n");
  Word(inspect, "PATH", options.path,
       "file, folder, or pattern of files; a path, s3://, gs:// or http://; "
       "the JSON of a pipeline that packs, or of a job",
       Files());
  AddReader(inspect);
  Add(inspect, "--within", options.look_within, "TIME",
      "look so long; what is not known then is left out (30s)");
  Add(inspect, "--row-length", options.row_lengths, "N",
      "elements of a row that documents of token files are packed into, to say "
      "how full rows are; may be given several times")
      ->check(Between(uint64_t{1}, uint64_t{1} << 24))
      ->allow_extra_args(false);
  Add(inspect, "--source", options.source, "NAME",
      "the source that is looked at, if PATH is a mixture's job");
  AddVocabulary(inspect);
  AddOutput(inspect, false);
}

void CommandLine::State::AddIndex() {
  CLI::App* index =
      Command("index", "List a dataset's records, without a service",
              "  leat index /data/train\n"
              "  leat index 's3://bucket/train-*.tar' --read 1000\n"
              "  leat index table/ --format parquet --arg columns=id --arg "
              "types=int64\n"
              "  leat index /data/train -o json | jq .records\n"
              "  leat index /data/train --seek --within 2h\n");
  Word(index, "URI", options.path,
       "file, folder, or pattern of files; a path, s3://, gs:// or http://",
       Files());
  AddReader(index);
  Add(index, "--read", options.read_records, "N",
      "how many records are read, spread evenly, to find bad ones (100)")
      ->check(Between(uint64_t{0}, uint64_t{1} << 40));
  index->add_flag("--seek", options.seek,
                  "read all records, and write where decoding can begin in "
                  "their JPEG files beside the dataset, so that first epochs "
                  "decode random crops faster, to the same pixels");
  Add(index, "--within", options.within, "TIME",
      "give up after so long, with exit code 4 (5m)");
  AddOutput(index, false);
}

void CommandLine::State::AddState() {
  CLI::App* state = Command(
      "state", "A copy of a coordinator's state folder, also while it runs",
      "  leat state backup /var/lib/leat /backup/leat-$(date +%F)\n"
      "  leat-coordinator --state /backup/leat-2026-01-31   # goes on from "
      "it\n");
  Choice(Word(state, "ACTION", options.kind, "backup"), {"backup"});
  Word(state, "DIR", options.path,
       "the folder of the coordinator's --state, on this machine", Files());
  Word(state, "TO", options.backup_to, "a folder that is not there yet",
       Files());
  Add(state, "--daemon-dir", options.daemon_dir, "FOLDER",
      "folder of leat-coordinator, which copies; default: leat's own, then "
      "PATH",
      Files());
}

void CommandLine::State::AddTrace() {
  CLI::App* trace = Command(
      "trace",
      "Record what workers do for a job's steps, as a file for Perfetto",
      "  leat trace resnet50 --duration 10s -o trace.json\n"
      "  leat trace resnet50 --ratio 0.1 --duration 1m\n");
  Word(trace, "JOB", options.name, "the job, its whole name", Names("jobs"));
  Add(trace, "--duration", options.duration, "TIME",
      "look for so long, up to 1m (10s)");
  Add(trace, "--ratio", options.ratio, "R",
      "the share of steps that are looked at (1)")
      ->check(Between(0.0, 1.0));
  Add(trace, "-o,--output", options.trace, "FILE",
      "file; - is stdout (trace.json)", Files());
}

}  // namespace leat::cli
