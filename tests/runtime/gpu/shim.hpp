// CUDA C as C++: kernels run on the processor, the threads of a block as fibres.
//
// What a GPU leaves undefined is found here: elements outside of a buffer, vectors that are not
// aligned, threads that store into one element, or use what another thread stores without a barrier
// in between, barriers that not all threads reach. The first fault of a launch is kept as text.
//
// Where it is asked for, the traffic is counted as a GPU has it: what the threads of a warp access
// at the same place of the text, for the same time, is one request.
//
// This file is compiled with each kernel; shim.cpp, which no kernel's types or sizes change, is
// compiled once and linked to each.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#pragma GCC visibility push(hidden)  // each library that is made has its own

#define TD_SHIM
#define __launch_bounds__(n)
#define TD_KERNEL static void
#define TD_DEVICE static inline
#define TD_SHARED(T, name, count, first) static shim::Shared<T, count> name##_memory; name##_memory.enter(first); shim::Pointer<T, count> name{&name##_memory}
#define TD_POINTER(T) shim::Buffer<T>
#define TD_SAME_POINTER(T) shim::Buffer<T>
#define TD_FIELD(T) shim::Buffer<T>
#define TD_BYTES shim::Scratch
#define TD_ACTIVE(active) shim::set_active(active)
#define TD_PARAMETER
#define TD_NEXT_STEP shim::next_step()
#define TD_LEAVE do { shim::leave(); return; } while (0)

struct dim3 { unsigned x, y, z; };
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

// -- 16-bit floats -------------------------------------------------------------------------------

struct td_f16 { uint16_t bits; };
struct td_bf16 { uint16_t bits; };

static float td_half_to_float(td_f16 x) {
  uint32_t sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu, bits;
  if (rest >= 0x7c00u) bits = 0x7f800000u | (rest & 0x3ffu) << 13;
  else if (rest >= 0x400u) bits = (rest << 13) + (112u << 23);
  else { float small = rest * 5.9604644775390625e-8f; memcpy(&bits, &small, 4); }
  bits |= sign;
  float y;
  memcpy(&y, &bits, 4);
  return y;
}
static td_f16 td_double_to_half(double x) {
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return {uint16_t(sign | 0x7e00)};
  double a = std::fabs(x);
  if (a >= 65520.0) return {uint16_t(sign | 0x7c00)};
  int exponent;
  std::frexp(a, &exponent);  // a < 2**exponent
  double unit = std::ldexp(1.0, (exponent < -13 ? -13 : exponent) - 11);
  double rounded = std::nearbyint(a / unit) * unit;
  if (rounded < 6.103515625e-05) return {uint16_t(sign | uint16_t(rounded / 5.9604644775390625e-8))};
  std::frexp(rounded, &exponent);
  uint16_t fraction = uint16_t(std::ldexp(rounded, 11 - exponent)) & 0x3ff;
  return {uint16_t(sign | ((exponent + 14) << 10) | fraction)};
}
static td_f16 td_float_to_half(float x) { return td_double_to_half(x); }
static float td_bfloat_to_float(td_bf16 x) {
  uint32_t bits = uint32_t(x.bits) << 16;
  float y;
  memcpy(&y, &bits, 4);
  return y;
}
static td_bf16 td_float_to_bfloat(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (std::isnan(x)) return {uint16_t((bits >> 16) | 0x40)};
  return {uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}
static td_bf16 td_double_to_bfloat(double x) {
  float y = float(x);
  if (std::isfinite(y) && double(y) != x) {  // rounded to odd first, so that it is rounded once
    uint32_t bits;
    memcpy(&bits, &y, 4);
    if (std::fabs(double(y)) > std::fabs(x)) bits--;
    bits |= 1;
    memcpy(&y, &bits, 4);
  }
  return td_float_to_bfloat(y);
}

namespace shim {

// -- faults --------------------------------------------------------------------------------------

void report(const char *text, ...);  // as printf has it; the first of a launch is kept
extern long long block_number;  // of all launches
static inline long long thread_number() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

// -- buffers -------------------------------------------------------------------------------------

extern long long epoch;  // barriers of all blocks so far

// Threads without a point of their own: what they load does not matter.
extern bool idle[1024];
static inline bool set_active(bool active) {
  idle[threadIdx.x] = !active;
  return active;
}

extern long long first_epoch;  // of the launch, or of the step that its only block is at

// Who stored into an element in this launch, or step, and who loaded it, last: -1 for nobody.
struct Use {
  long long writer = -1, written = -1, reader = -1, read = -1;
  bool several = false;  // threads have loaded it since the last barrier
  bool elsewhere = false;  // another block has loaded it, too

  void forget_other_steps() {
    if (written < first_epoch) writer = -1;
    if (read < first_epoch) reader = -1;
  }

  static bool other_block(long long thread) { return thread >= 0 && thread / blockDim.x != blockIdx.x; }
  void load() {
    several = read == epoch && (several || reader != thread_number());
    elsewhere |= other_block(reader);
    reader = thread_number(), read = epoch;
  }
  bool stored_now() const {
    return writer >= 0 && writer != thread_number() && (written == epoch || other_block(writer));
  }
  bool loaded_now() const {
    return elsewhere || other_block(reader) || (read == epoch && (several || reader != thread_number()));
  }
};

// The bytes of a sector, the least that moves between a device and its memory, that the blocks of a
// launch have loaded, or stored.
struct Moved {
  long long block;  // the last one
  unsigned now, most, all;  // bytes: of that block, of the block with most, of all
};
constexpr long long sector = 32;

void outside(long long place, long long size, int number);
void meets_others(long long place, int number, const char *what);
void stored_twice(long long place, long long writer, int number);
void note_moved(Moved &sector, unsigned bytes);

// `uses` are there for buffers that are stored into. `loaded` and `stored` have what
// was moved of each sector; null pointers where that is not counted.
template <typename T> struct Buffer {
  T *data;
  long long size;
  int number;
  Use *uses;
  Moved *loaded, *stored;

  operator Buffer<const T>() const requires(!std::is_const_v<T>) {
    return {data, size, number, uses, loaded, stored};
  }
  bool has(long long place, int count = 1) const {
    if (place >= 0 && place + count <= size) return true;
    outside(place, size, number);
    return false;
  }
  void load_by_this_thread(long long place) const {
    if (loaded) note_moved(loaded[place * (long long)sizeof(T) / sector], sizeof(T));
    if (!uses || idle[threadIdx.x]) return;
    uses[place].forget_other_steps();
    if (uses[place].stored_now()) meets_others(place, number, "loads");
    uses[place].load();
  }
  void store_by_this_thread(long long place) const {
    Use &use = uses[place];
    use.forget_other_steps();
    if (use.writer >= 0 && use.writer != thread_number()) stored_twice(place, use.writer, number);
    if (use.loaded_now()) meets_others(place, number, "stores into");
    use.writer = thread_number(), use.written = epoch;
    if (stored) note_moved(stored[place * (long long)sizeof(T) / sector], sizeof(T));
  }
};

// -- traffic -------------------------------------------------------------------------------------

extern bool counts;
// Buffer -2 is scratch memory, -1 is shared memory.
void note_access(int number, bool store, uintptr_t address, int bytes, std::source_location at);
static inline void count(int number, bool store, uintptr_t address, int bytes, std::source_location at) {
  if (counts) note_access(number, store, address, bytes, at);
}

// Memory that stages use among themselves.
struct Scratch {
  char *data;
  long long bytes;
  Use *uses;
};

// -- what a launch is given ------------------------------------------------------------------------

struct Operand {
  void *data;
  long long count;
  Use *uses;
  Moved *loaded, *stored;
};
// Operands and sizes are those of one segment after the other. The functions that are given one are
// found by their names, so it is visible.
struct __attribute__((visibility("default"))) Given {
  const Operand *operands;
  const long long *sizes, *firsts;
  int buffers, symbols, segments;
  Scratch scratch;
  void *structs;  // those of segments

  template <typename T> Buffer<T> buffer(int number, int segment = 0) const {
    const Operand &o = operands[segment * buffers + number];
    return {(T *)o.data, o.count, number, o.uses, o.loaded, o.stored};
  }
  template <typename T> T value(int number, int segment = 0) const {
    return *(const T *)operands[segment * buffers + number].data;
  }
  long long size(int number, int segment = 0) const { return sizes[segment * symbols + number]; }
  void *room(size_t bytes);  // for the structs
};

// -- fibres --------------------------------------------------------------------------------------

extern unsigned shared_bytes;  // that the launch gives each block
void leave();
void wait_for(int whom);  // 1: the threads of the warp, 2: those of the block
void next_step();
long long &given_by(unsigned thread);  // what it gives the other threads of its warp

// -- shared memory -------------------------------------------------------------------------------

// An element knows who used it since the last barrier.
template <typename T> struct Element {
  T value;
  long long written, read;  // the barrier after which this was last done
  int writer, reader;

  void set(T x) {
    int self = threadIdx.x;
    if ((written == epoch && writer != self) || (read == epoch && reader != self))
      report("shared memory: thread %d writes what thread %d uses, without a barrier", self, written == epoch ? writer : reader);
    value = x, written = epoch, writer = self;
  }
  T get() {
    int self = threadIdx.x;
    if (written == epoch && writer != self)
      report("shared memory: thread %d reads what thread %d writes, without a barrier", self, writer);
    if (read != epoch || reader == self) reader = self;
    else reader = -1;  // several threads
    read = epoch;
    return value;
  }
};
template <typename T, int N> struct Shared {
  Element<T> elements[N];
  long long first;
  Element<T> &at(long long place) {
    if (place < 0 || place >= N) report("shared memory: element %lld of %d", place, N);
    return elements[place < 0 || place >= N ? 0 : place];
  }
  void enter(long long from) {
    first = from;
    if (first % alignof(T) || first + (long long)sizeof(T) * N > shared_bytes)
      report("shared memory: bytes %lld to %lld of %u", first, first + (long long)sizeof(T) * N, shared_bytes);
    if (block_number == entered) return;
    entered = block_number;
    for (auto &e : elements) e.written = e.read = -1, e.writer = e.reader = -1;
  }
  long long entered = 0;
};
template <typename T, int N> struct Pointer { Shared<T, N> *all; };

}  // namespace shim

#define SHIM_HERE std::source_location at = std::source_location::current()

static inline void __syncthreads() { shim::wait_for(2); }
template <typename T> static T __shfl_xor_sync(unsigned, T x, int distance) {
  using namespace shim;
  memcpy(&given_by(threadIdx.x), &x, sizeof x);
  wait_for(1);
  unsigned other = threadIdx.x ^ unsigned(distance);
  if (other >= blockDim.x) report("a shuffle with thread %u of %u", other, blockDim.x);
  else memcpy(&x, &given_by(other), sizeof x);
  wait_for(1);
  return x;
}

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __ballot_sync(unsigned, bool x) {
  using namespace shim;
  given_by(threadIdx.x) = x;
  wait_for(1);
  unsigned found = 0, first = threadIdx.x / 32 * 32;
  for (unsigned n = 0; n < 32 && first + n < blockDim.x; n++) found |= unsigned(given_by(first + n) == 1) << n;
  wait_for(1);
  return found;
}
template <typename T> static T __shfl_up_sync(unsigned, T x, int distance) {
  using namespace shim;
  memcpy(&given_by(threadIdx.x), &x, sizeof x);
  wait_for(1);
  if (threadIdx.x % 32 >= unsigned(distance)) memcpy(&x, &given_by(threadIdx.x - distance), sizeof x);
  wait_for(1);
  return x;
}
template <typename T, int N>
static T td_peek(shim::Pointer<T, N> row, long long place, SHIM_HERE) {
  shim::count(-1, false, row.all->first + place * sizeof(T), sizeof(T), at);
  return row.all->at(place).get();
}
template <typename T, int N>
static void td_poke(shim::Pointer<T, N> row, long long place, std::type_identity_t<T> x, SHIM_HERE) {
  shim::count(-1, true, row.all->first + place * sizeof(T), sizeof(T), at);
  row.all->at(place).set(x);
}
template <typename T> static std::remove_const_t<T> td_element(shim::Buffer<T> b, long long place, SHIM_HERE) {
  if (!b.has(place)) return std::remove_const_t<T>();
  b.load_by_this_thread(place);
  shim::count(b.number, false, uintptr_t(b.data + place), sizeof(T), at);
  return b.data[place];
}
template <typename T> static void td_put(shim::Buffer<T> b, long long place, std::type_identity_t<T> x, SHIM_HERE) {
  if (!b.has(place)) return;
  b.store_by_this_thread(place);
  shim::count(b.number, true, uintptr_t(b.data + place), sizeof(T), at);
  b.data[place] = x;
}
template <typename T> static shim::Buffer<T> td_scratch(shim::Scratch s, long long first, long long count) {
  if (first % 256 || first + count * (long long)sizeof(T) > s.bytes)
    shim::report("scratch memory: %lld elements from byte %lld of %lld", count, first, s.bytes);
  return {(T *)(s.data + first), count, -2, s.uses + first, nullptr, nullptr};
}
template <typename T> static std::remove_const_t<T> *td_raw(shim::Buffer<T> b) {
  return (std::remove_const_t<T> *)b.data;
}
template <typename T, int N> struct td_vector;
template <typename T, int N, typename B> static td_vector<T, N> td_elements(B b, long long place, SHIM_HERE) {
  td_vector<T, N> found = {};
  if (uintptr_t(b.data + place) % (sizeof(T) * N)) shim::report("buffer %d: a vector at element %lld is not aligned", b.number, place);
  if (!b.has(place, N)) return found;
  for (int n = 0; n < N; n++) b.load_by_this_thread(place + n), found.at[n] = b.data[place + n];
  shim::count(b.number, false, uintptr_t(b.data + place), sizeof(T) * N, at);
  return found;
}
template <typename T, int N, typename B> static void td_put_all(B b, long long place, td_vector<T, N> x, SHIM_HERE) {
  if (uintptr_t(b.data + place) % (sizeof(T) * N)) shim::report("buffer %d: a vector at element %lld is not aligned", b.number, place);
  if (!b.has(place, N)) return;
  for (int n = 0; n < N; n++) b.store_by_this_thread(place + n), b.data[place + n] = x.at[n];
  shim::count(b.number, true, uintptr_t(b.data + place), sizeof(T) * N, at);
}

#pragma GCC visibility pop
