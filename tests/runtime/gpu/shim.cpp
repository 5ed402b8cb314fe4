// What `shim.hpp` declares and no kernel's text changes: threads as fibres, faults, traffic.

#include "shim.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <tuple>
#include <vector>
#include <ucontext.h>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace shim {

// -- faults --------------------------------------------------------------------------------------

static char fault[256];
void report(const char *text, ...) {
  if (fault[0]) return;
  va_list values;
  va_start(values, text);
  vsnprintf(fault, sizeof fault, text, values);
  va_end(values);
}

long long block_number, epoch, first_epoch;
bool idle[1024];

void outside(long long place, long long size, int number) {
  report("buffer %d of %lld elements: element %lld in block %u, thread %u", number, size, place, blockIdx.x, threadIdx.x);
}
void meets_others(long long place, int number, const char *what) {
  report("buffer %d: thread %lld %s element %lld while others may %s it", number, thread_number(), what, place, *what == 'l' ? "store into" : "load");
}
void stored_twice(long long place, long long writer, int number) {
  report("buffer %d: threads %lld and %lld store into element %lld", number, writer, thread_number(), place);
}
void note_moved(Moved &sector, unsigned bytes) {
  if (sector.block != block_number) sector.block = block_number, sector.now = 0;
  sector.now += bytes, sector.all += bytes;
  if (sector.now > sector.most) sector.most = sector.now;
}

// -- traffic -------------------------------------------------------------------------------------

// Of one buffer, of scratch memory (-2) or of shared memory (-1). Global memory comes in sectors of 32 bytes. Shared memory has
// 32 banks of 4 bytes: a request takes as many turns as one bank has words to give.
struct Traffic { long long elements, requests, moved, least; };
static std::map<std::pair<int, int>, Traffic> traffic;  // by buffer, and whether stores
bool counts;
typedef std::tuple<int, int, int, unsigned, unsigned, long long> Site;  // buffer, store, line, column, warp, time
static std::map<Site, std::vector<std::pair<uintptr_t, int>>> requests;
static std::map<std::tuple<unsigned, unsigned, unsigned>, long long> times;  // line, column, thread

void note_access(int number, bool store, uintptr_t address, int bytes, std::source_location at) {
  long long time = times[{at.line(), at.column(), threadIdx.x}]++;
  requests[{number, store, int(at.line()), at.column(), threadIdx.x / 32, time}].push_back({address, bytes});
}
static void sum_traffic() {
  for (auto &[site, accesses] : requests) {
    int number = std::get<0>(site);
    Traffic &sum = traffic[{number, std::get<1>(site)}];
    int unit = number == -1 ? 4 : 32;
    std::map<uintptr_t, int> units;
    std::map<uintptr_t, bool> bytes;
    for (auto &[address, size] : accesses)
      for (int n = 0; n < size; n++) units[(address + n) / unit] = 1, bytes[address + n] = true;
    sum.elements += accesses.size();
    sum.requests++;
    sum.least += number == -1 ? (units.size() + 31) / 32 : (bytes.size() + 31) / 32;
    if (number != -1) { sum.moved += units.size(); continue; }
    int banks[32] = {}, most = 0;
    for (auto &[word, one] : units) most = std::max(most, banks[word % 32] += one);
    sum.moved += most;
  }
  requests.clear();
  times.clear();
}

// -- fibres --------------------------------------------------------------------------------------

struct Fibre {
  ucontext_t context;
  std::vector<char> stack;
  bool done, left;  // left: on purpose, before the first barrier
  int waits;  // 0: runs, 1: for the warp, 2: for the block
  long long given;  // what a warp exchanges
};
static std::vector<Fibre> fibres;
static ucontext_t scheduler;
static void (*kernel_body)(const Given &);
static const Given *kernel_given;
static bool has_fibres;
unsigned shared_bytes;

static void fibre_main() {
  kernel_body(*kernel_given);
  fibres[threadIdx.x].done = true;
  swapcontext(&fibres[threadIdx.x].context, &scheduler);
}
void leave() {
  if (has_fibres) fibres[threadIdx.x].left = true;
}
void wait_for(int whom) {
  if (!has_fibres) return report("threads meet in a kernel that was said not to");
  Fibre &self = fibres[threadIdx.x];
  self.waits = whom;
  swapcontext(&self.context, &scheduler);
}

long long &given_by(unsigned thread) { return fibres[thread].given; }

void next_step() {
  wait_for(2);
  first_epoch = epoch;  // all threads set the same
}

// All threads of a group that waits go on together.
static bool release(unsigned first, unsigned count, int whom) {
  unsigned waiting = 0, done = 0, left = 0;
  for (unsigned n = first; n < first + count; n++) {
    waiting += fibres[n].waits == whom;
    if (fibres[n].left) left++;
    else done += fibres[n].done;
  }
  if (!waiting || waiting + done + left < count) return false;
  if (done) report("block %u: %u threads wait for %u that have ended", blockIdx.x, waiting, done);
  if (whom == 2) epoch++;
  for (unsigned n = first; n < first + count; n++)
    if (fibres[n].waits == whom) fibres[n].waits = 0;
  return true;
}

static void run_block(unsigned threads) {
  if (fibres.size() < threads) {
    fibres.clear();
    fibres.resize(threads);
    for (Fibre &f : fibres) f.stack.resize(64 << 10);
  }
  for (unsigned n = 0; n < threads; n++) {
    Fibre &f = fibres[n];
    f.done = f.left = false;
    f.waits = 0;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = nullptr;
    makecontext(&f.context, fibre_main, 0);
  }
  for (;;) {
    bool moved = false, left = false;
    for (unsigned n = 0; n < threads; n++) {
      Fibre &f = fibres[n];
      left |= !f.done;
      if (f.done || f.waits) continue;
      threadIdx.x = n;
      moved = true;
      swapcontext(&scheduler, &f.context);
    }
    if (!left) return;
    for (unsigned n = 0; n < threads; n += 32) moved |= release(n, threads - n < 32 ? threads - n : 32, 1);
    moved |= release(0, threads, 2);
    if (!moved) return report("block %u: threads wait for one another for ever", blockIdx.x);
  }
}

static const char *run(unsigned blocks, unsigned threads, unsigned bytes, bool meets, void (*body)(const Given &), const Given &given) {
  fault[0] = 0;
  first_epoch = epoch;
  shared_bytes = bytes;
  kernel_body = body;
  kernel_given = &given;
  has_fibres = meets;
  gridDim.x = blocks;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks && !fault[0]; blockIdx.x++) {
    block_number++;
    memset(idle, 0, sizeof idle);
    if (meets) run_block(threads);
    else for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) body(given);
    epoch++;
    sum_traffic();
  }
  return fault;
}

static std::vector<char> all_structs;
void *Given::room(size_t bytes) {
  all_structs.resize(bytes);
  return structs = all_structs.data();
}

}  // namespace shim

// What was counted: a row of buffer, whether stores, elements, requests, units moved, and the least
// units that these requests could move, for each. The counts begin again.
extern "C" __attribute__((visibility("default"))) int shim_traffic(bool on, long long *rows) {
  int n = 0;
  for (auto &[key, t] : shim::traffic) {
    const long long row[] = {key.first, key.second, t.elements, t.requests, t.moved, t.least};
    memcpy(rows + 6 * n++, row, sizeof row);
  }
  shim::traffic.clear();
  shim::counts = on;
  return n;
}

extern "C" __attribute__((visibility("default"))) const char *td_run(
    void (*kernel)(const shim::Given &), void (*prepare)(shim::Given &), unsigned blocks, unsigned threads,
    unsigned bytes, bool meets, const shim::Operand *operands, const long long *sizes,
    const long long *firsts, int buffers, int symbols, int segments, shim::Scratch scratch) {
  shim::Given given = {operands, sizes, firsts, buffers, symbols, segments, scratch, nullptr};
  if (prepare) prepare(given);
  return shim::run(blocks, threads, bytes, meets, kernel, given);
}
