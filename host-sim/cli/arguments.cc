// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands.h"
#include "cli/host_setup.h"
#include "cli/settings.h"
#include "engine/phase.h"

namespace mig::sim {
namespace {

constexpr char kAbout[] =
    "Migrates a simulated guest over a migtransport plugin, and says what that "
    "costs.";
// An empty group is not listed by --help: for tests.
constexpr char kHidden[] = "";

void AddCommon(CLI::App* app, RawOptions* raw) {
  app->add_option("--plugin", raw->plugin,
                  "The transport: NAME as 'probe' lists it, or a path with '/'")
      ->capture_default_str();
  app->add_option("--plugin-option", raw->plugin_options,
                  "NAME=VALUE of the plugin ('options' lists them); repeatable")
      ->take_all()
      ->allow_extra_args(false);
  app->add_option("--log-level", raw->log_level,
                  "What the plugin may log: none, error, warning, info, debug")
      ->capture_default_str();
  app->add_flag("--json", raw->json, "One JSON object on stdout");
  app->add_flag("--quiet", raw->quiet, "Only what must be known on stderr");
}

void AddMigration(CLI::App* app, RawOptions* raw) {
  app->add_option("--vm-uuid", raw->vm_uuid,
                  "Which guest; the same on both "
                  "sides")
      ->capture_default_str();
  app->add_option("--attempt", raw->attempt,
                  "1, 2, ...: the same on both sides, higher for a retry")
      ->capture_default_str();
  app->add_option("--peer-wait", raw->peer_wait,
                  "How long to wait for the peer to appear; 0: for ever")
      ->capture_default_str();
  app->add_option("--after", raw->after,
                  "How long the guest goes on afterwards: steps (1000) or a "
                  "time (500ms)")
      ->capture_default_str();
  app->add_flag("--verify,!--no-verify", raw->verify,
                "Compare all memory of both sides (not in the downtime)")
      ->capture_default_str();
  app->add_option("--pause-at", raw->pause_at)->group(kHidden);
  app->add_option("--run-log", raw->run_log)->group(kHidden);
}

void AddMemory(CLI::App* app, RawOptions* raw, const std::string& help) {
  app->add_option("--memory", raw->memory, help)
      ->take_all()
      ->allow_extra_args(false);
}

void AddSource(CLI::App* app, RawOptions* raw) {
  AddMemory(app, raw,
            "SIZE, or NAME:SIZE[,backing=anon|memfd|hugetlb|file:PATH]; "
            "repeatable (256M)");
  app->add_option("--workload", raw->workload,
                  "What the guest does: idle, uniform, hotset, sequential, "
                  "trace:FILE, bank, machine, with options as in "
                  "hotset:size=64M,share=0.9")
      ->capture_default_str();
  app->add_option("--seed", raw->seed, "Of the workload")
      ->capture_default_str();
  app->add_option("--tracker", raw->tracker,
                  "Dirty tracking: auto, uffd, soft-dirty, mprotect, simulated")
      ->capture_default_str();
  app->add_option("--downtime-limit", raw->downtime_limit,
                  "Stop the guest when the rest fits into this")
      ->capture_default_str();
  app->add_option("--converge", raw->converge,
                  "If it does not converge: throttle the guest, stop it at the "
                  "limit, or give-up early (throttle|stop|give-up)")
      ->capture_default_str();
  app->add_option("--time-limit", raw->time_limit,
                  "Of the rounds, as 60s; 0: none")
      ->capture_default_str();
  app->add_option("--max-rounds", raw->max_rounds, "0: no limit")
      ->capture_default_str();
  app->add_option("--max-bandwidth", raw->max_bandwidth,
                  "Bytes a second while the guest runs, as 100M; 0: no limit")
      ->capture_default_str();
  app->add_option("--device-state", raw->device_state,
                  "Size of a device state to send beside the guest's own")
      ->capture_default_str();
  app->add_option("--zero-detect", raw->zero_detect,
                  "Send zero pages as such: off, in the first round, in every "
                  "round (off|first|every)")
      ->capture_default_str();
  app->add_flag("--strict", raw->strict,
                "Have the plugin check that no round has a page twice");
}

void AddDestination(CLI::App* app, RawOptions* raw) {
  app->add_option("--max-memory", raw->max_memory,
                  "The largest guest to take (default: this machine's memory)");
  app->add_flag("--prefault", raw->prefault,
                "Fault the destination's memory in before round 1 (a sparse "
                "guest becomes whole)");
  app->add_option("--load-delay", raw->load_delay)->group(kHidden);
  app->add_flag("--host-busy,!--no-host-busy", raw->say_busy)->group(kHidden);
}

void AddModel(CLI::App* app, RawModel* raw) {
  app->add_option("--seeds", raw->seeds, "A, or A-B: a whole migration each")
      ->capture_default_str();
  app->add_option("--jobs", raw->jobs, "Processes")->capture_default_str();
  app->add_option("--max-faults", raw->max_faults, "Of a run, at most")
      ->capture_default_str();
  app->add_option("--max-failures", raw->max_failures, "After which to stop")
      ->capture_default_str();
  app->add_option("--log", raw->log,
                  "Run the first seed only, and write all that happens to this "
                  "file");
  app->add_flag("--twice", raw->twice,
                "Each seed two times: both must be the same, event by event");
  app->add_flag("--every-fault", raw->every_fault,
                "A small migration of the first seed, with each kind of fault "
                "at every occasion there is");
}

void AddBench(CLI::App* app, RawBench* raw) {
  app->add_option("--plugin", raw->plugin, "rdma, or its path with '/'")
      ->capture_default_str();
  app->add_option("--reproduce", raw->reproduce,
                  "inflight: one write or many under way to a chunk, on a "
                  "modelled network")
      ->required();
  app->add_option("--profile", raw->profile, "The modelled network")
      ->capture_default_str();
  app->add_option("--set", raw->changes,
                  "NAME=VALUE of a figure of the profile; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  app->add_flag("--show-profile", raw->show_profile,
                "Its figures and where each is from, and no more");
  app->add_option("--memory", raw->memory, "Of the guest, which takes none")
      ->capture_default_str();
  app->add_flag("--json", raw->json, "One JSON object on stdout");
  app->add_flag("--quiet", raw->quiet, "No progress");
}

// CLI11 explains itself in several lines; one has to do.
std::string OneLine(const std::string& text) {
  std::string line(absl::StripAsciiWhitespace(text));
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

struct Commands {
  Commands(RawOptions* raw, RawModel* raw_model, RawBench* raw_bench)
      : app(kAbout, "mig-host-sim"),
        run(app.add_subcommand("run", "Migrate between two processes here")),
        source(app.add_subcommand("source", "Send a guest to URI")),
        destination(app.add_subcommand("destination", "Take a guest at URI")),
        probe(app.add_subcommand("probe", "Show a plugin, or all")),
        options(app.add_subcommand("options", "Show a plugin's options")),
        compare(app.add_subcommand("compare",
                                   "Show reports of --json side by side")),
        model(app.add_subcommand("model",
                                 "Migrate under a virtual clock, with faults "
                                 "by seeds, and check every page")),
        bench(app.add_subcommand("bench",
                                 "Repeat a published experiment on a modelled "
                                 "network")) {
    app.require_subcommand(1);
    app.footer(kExitCodeHelp);
    app.set_version_flag("--version", MIG_HOST_SIM_VERSION);
    for (CLI::App* each : {run, source, destination, probe, options}) {
      AddCommon(each, raw);
    }
    AddCommon(model, raw);
    AddModel(model, raw_model);
    AddBench(bench, raw_bench);
    for (CLI::App* each : {run, source, destination}) {
      AddMigration(each, raw);
      each->footer(kExitCodeHelp);
    }
    AddSource(run, raw);
    AddSource(source, raw);
    AddDestination(run, raw);
    AddDestination(destination, raw);
    AddMemory(destination, raw,
              "As at the source; default: what the source describes");
    run->add_option("--listen", raw->uri,
                    "Where the destination listens (a free local place)");
    run->add_flag("--one-process", raw->one_process,
                  "Both sides on two threads, for plugins that reach no "
                  "further (example)");
    run->add_option("--destination-pause-at", raw->destination_pause_at)
        ->group(kHidden);
    source
        ->add_option("URI", raw->uri, "tcp://HOST:PORT, unix:/PATH, fd:N, ...")
        ->required();
    destination->add_option("URI", raw->uri, "The same; port 0: a free one")
        ->required();
    compare->add_option("REPORT", reports, "Files that 'run --json' wrote")
        ->required();
    destination->add_option("--report-fd", raw->report_fd)->group(kHidden);
  }

  CLI::App app;
  CLI::App *run, *source, *destination, *probe, *options, *compare, *model,
      *bench;
  std::vector<std::string> reports;  // of compare
};

ExitCode Dispatch(const Commands& commands, const RawOptions& raw,
                  const RawModel& raw_model, const RawBench& raw_bench) {
  if (commands.model->parsed()) return ModelCommand(raw, raw_model);
  if (commands.bench->parsed()) return BenchCommand(raw_bench);
  if (commands.run->parsed()) return RunCommand(raw);
  if (commands.source->parsed()) return SourceCommand(raw);
  if (commands.destination->parsed()) return DestinationCommand(raw);
  if (commands.options->parsed()) return OptionsCommand(raw);
  if (commands.compare->parsed()) return CompareCommand(commands.reports);
  return ProbeCommand(raw, commands.probe->count("--plugin") > 0);
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  RawOptions raw;
  RawModel raw_model;
  RawBench raw_bench;
  Commands commands(&raw, &raw_model, &raw_bench);
  try {
    commands.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return commands.app.exit(error);
    std::string name = "mig-host-sim";
    for (const CLI::App* command : commands.app.get_subcommands()) {
      absl::StrAppend(&name, " ", command->get_name());
    }
    Console("", false, MIG_LOG_WARNING)
        .Say(absl::StrCat(OneLine(error.what()), ": see '", name, " --help'"));
    return kExitUsage;
  }
  return Dispatch(commands, raw, raw_model, raw_bench);
}

}  // namespace mig::sim
