// SPDX-License-Identifier: Apache-2.0
//
// Commands that show datasets, rows, and the time of single steps.
#include "client/cli/options/command_line_state.h"

namespace leat::cli {

// Adds options that describe a dataset's reader, and the program that lists it.
void CommandLine::State::AddReader(CLI::App* command) {
  command
      ->add_option("--format", options.format,
                   "a reader's name without \"readers.\"; the default follows "
                   "from names and first bytes")
      ->type_name("FORMAT");
  command
      ->add_option("--arg", options.reader_args,
                   "an argument of the reader, of a list one value; may be "
                   "given several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  CLI::Option* daemons = command->add_option(
      "--daemon-dir", options.daemon_dir,
      "folder of leat-worker, which lists; default: leat's own, then PATH");
  daemons->type_name("FOLDER");
  values[daemons] = Files();
}

void CommandLine::State::AddVocabulary(CLI::App* command) {
  CLI::Option* vocabulary = command->add_option(
      "--vocabulary", options.vocabulary,
      "JSON file of a tokenizer, as Hugging Face's tokenizers write it: shows "
      "tokens as text");
  vocabulary->type_name("FILE");
  values[vocabulary] = Files();
}

void CommandLine::State::AddSheet() {
  CLI::App* sheet =
      Command("sheet", "Picture of what the trainer sees at a step",
              "  leat sheet resnet50 -o sheet.png\n"
              "  leat sheet resnet50 --step 120 --rows 64\n"
              "  leat sheet llm --vocabulary tokenizer.json -o rows.html\n");
  values[sheet->add_option("JOB", options.name, "the job")->required()] =
      Names("jobs");
  sheet->add_option("--step", options.step, "step, from 0")
      ->check(NotNegative())
      ->type_name("S");
  sheet->add_option("--epoch", options.epoch, "epoch, from 0")
      ->check(NotNegative())
      ->type_name("E");
  sheet->add_option("--rows", options.rows, "rows drawn, 1 to 256")
      ->check(CLI::Range(1, 256).description(""))
      ->type_name("N");
  sheet->add_option("--columns", options.columns, "images a line, 1 to 64")
      ->check(CLI::Range(1, 64).description(""))
      ->type_name("N");
  sheet
      ->add_option("--field", options.field,
                   "field that is drawn, an image or a sequence; default: the "
                   "first image, or else the first sequence")
      ->type_name("NAME");
  CLI::Option* picture = sheet->add_option(
      "-o,--output", options.picture,
      "file, of sequences also .html; - is stdout (sheet.png)");
  picture->type_name("FILE");
  values[picture] = Files();
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
      "  leat inspect web.bin --row-length 4096 --vocabulary "
      "tokenizer.json\n"
      "  leat describe job llm -o json > llm.json; leat inspect llm.json\n");
  values[inspect
             ->add_option("PATH", options.path,
                          "file, folder, or pattern of files; a path, s3://, "
                          "gs:// or http://; the JSON of a pipeline that "
                          "packs, or of a job")
             ->required()] = Files();
  AddReader(inspect);
  inspect
      ->add_option("--within", options.look_within,
                   "look so long; what is not known then is left out (30s)")
      ->type_name("TIME");
  inspect
      ->add_option("--row-length", options.row_lengths,
                   "elements of a row that documents of token files are packed "
                   "into, to say how full rows are; may be given several times")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24).description(""))
      ->type_name("N")
      ->allow_extra_args(false);
  inspect
      ->add_option("--source", options.source,
                   "the source that is looked at, if PATH is a mixture's job")
      ->type_name("NAME");
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
  values[index
             ->add_option("URI", options.path,
                          "file, folder, or pattern of files; a path, s3://, "
                          "gs:// or http://")
             ->required()] = Files();
  AddReader(index);
  index
      ->add_option("--read", options.read_records,
                   "how many records are read, spread evenly, to find bad ones "
                   "(100)")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40).description(""))
      ->type_name("N");
  index->add_flag("--seek", options.seek,
                  "read all records, and write where decoding can begin in "
                  "their JPEG files beside the dataset, so that first epochs "
                  "decode random crops faster, to the same pixels");
  index
      ->add_option("--within", options.within,
                   "give up after so long, with exit code 4 (5m)")
      ->type_name("TIME");
  AddOutput(index, false);
}

void CommandLine::State::AddState() {
  CLI::App* state = Command(
      "state", "A copy of a coordinator's state folder, also while it runs",
      "  leat state backup /var/lib/leat /backup/leat-$(date +%F)\n"
      "  leat-coordinator --state /backup/leat-2026-01-31   # goes on from "
      "it\n");
  Choice(state->add_option("ACTION", options.kind, "backup")->required(),
         {"backup"});
  values[state
             ->add_option("DIR", options.path,
                          "the folder of the coordinator's --state, on this "
                          "machine")
             ->required()] = Files();
  values[state
             ->add_option("TO", options.backup_to,
                          "a folder that is not there yet")
             ->required()] = Files();
  CLI::Option* daemons = state->add_option(
      "--daemon-dir", options.daemon_dir,
      "folder of leat-coordinator, which copies; default: leat's own, then "
      "PATH");
  daemons->type_name("FOLDER");
  values[daemons] = Files();
}

void CommandLine::State::AddTrace() {
  CLI::App* trace = Command(
      "trace",
      "Record what workers do for a job's steps, as a file for Perfetto",
      "  leat trace resnet50 --duration 10s -o trace.json\n"
      "  leat trace resnet50 --ratio 0.1 --duration 1m\n");
  values[trace->add_option("JOB", options.name, "the job, its whole name")
             ->required()] = Names("jobs");
  trace
      ->add_option("--duration", options.duration,
                   "look for so long, up to 1m (10s)")
      ->type_name("TIME");
  trace
      ->add_option("--ratio", options.ratio,
                   "the share of steps that are looked at (1)")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("R");
  CLI::Option* file = trace->add_option("-o,--output", options.trace,
                                        "file; - is stdout (trace.json)");
  file->type_name("FILE");
  values[file] = Files();
}

}  // namespace leat::cli
