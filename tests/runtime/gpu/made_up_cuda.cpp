// CUDA's runtime and driver over memory of the processor, for the real CuPy (`made_up_cuda.py`).
//
// Their headers are included, so the compiler compares each signature. Work of streams is done as late
// as CUDA allows, when somebody waits for it, and what is not allowed while work is recorded is refused.
// Conditional nodes are those of `graphs.cpp`; the calls that begin with `made` are the tests' own.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>

extern "C" {  // of graphs.cpp
void made_begin(void *);
void *made_end(void *);
int made_records(void *);
void made_call(void *, int64_t);
void made_decide(void *, uint64_t, uint64_t, const bool *);
int made_run(void *, void (*)(int64_t));
}

namespace {
enum { DEVICES = 2, VERSION = CUDART_VERSION };
using Work = std::function<void()>;
struct Block { char *begin; size_t size; int device; };  // device -1: pinned memory of the host
struct Stream { int device; std::deque<Work> todo; bool invalid = false; };
struct Event { bool done = true; Stream *stream = nullptr; int64_t time = 0; };
struct Module { std::string image; };
struct Function { std::string name; int most_shared = 48 << 10; };
struct Exec { void *graph; };

// Whoever holds the lock may wait for Python's, so a thread that has the latter gives it up meanwhile.
std::recursive_mutex lock;
int (*has_python)();
void *(*leave_python)();
void (*enter_python)(void *);
struct Guard {
  explicit Guard(std::recursive_mutex &) {
    if (lock.try_lock()) return;
    void *state = has_python() ? leave_python() : nullptr;
    lock.lock();
    if (state) enter_python(state);
  }
  ~Guard() { lock.unlock(); }
};
std::map<char *, Block> blocks;
std::set<Stream *> streams;
std::vector<Work> works;
std::string said;                                    // what was wrong first
size_t room = size_t(1) << 30, taken;
thread_local int current;
thread_local Stream *recording;                      // of this thread
thread_local cudaError_t last;
int64_t (*prepare)(void *, unsigned, unsigned, unsigned, void **);
void (*run)(int64_t);

cudaError_t failed(const char *name, const std::string &why, cudaError_t error = cudaErrorInvalidValue) {
  if (said.empty()) said = std::string(name) + ": " + why;
  return last = error;
}
void execute(int64_t number) { works.at(number)(); }
void drain(Stream *stream) {
  while (!stream->todo.empty()) {
    Work work = std::move(stream->todo.front());
    stream->todo.pop_front();
    work();
  }
}
void drain_all() { for (Stream *stream : streams) drain(stream); }
// Work that the capturing thread may not ask for in the mode "thread local".
bool refused(const char *name) {
  if (!recording) return false;
  recording->invalid = true;
  failed(name, "is not allowed while this thread records", cudaErrorStreamCaptureUnsupported);
  return true;
}
void submit(Stream *stream, Work work) {
  if (made_records(stream)) {
    works.push_back(std::move(work));
    made_call(stream, works.size() - 1);
  } else {
    stream->todo.push_back(std::move(work));
  }
}
// The block that has all of some bytes; nullptr: pageable memory of the host, or a mistake.
Block *block_of(const void *address, size_t size) {
  auto next = blocks.upper_bound((char *)address);
  if (next == blocks.begin()) return nullptr;
  Block &found = std::prev(next)->second;
  char *begin = (char *)address;
  return begin >= found.begin && begin + size <= found.begin + found.size ? &found : nullptr;
}
bool overlaps(const void *address, size_t size) {    // some block, whole or in part
  auto next = blocks.lower_bound((char *)address + size);
  if (next == blocks.begin()) return false;
  Block &found = std::prev(next)->second;
  return found.begin + found.size > (char *)address;
}
bool on_device(const void *address, size_t size, int device) {
  Block *found = block_of(address, size);
  return found && found->device == device;
}
bool is_host(const void *address, size_t size) {
  Block *found = block_of(address, size);
  return found ? found->device == -1 : !overlaps(address, size);
}
// The streams that nobody makes have the numbers 0, 1 and 2: each device has its own.
Stream *known(cudaStream_t given) {
  static std::map<std::pair<int, uintptr_t>, Stream *> defaults;
  if ((uintptr_t)given > 2) return (Stream *)given;
  Stream *&found = defaults[{current, std::max<uintptr_t>((uintptr_t)given, 1)}];
  if (!found) streams.insert(found = new Stream{current, {}});
  return found;
}
cudaError_t stream_of(const char *name, cudaStream_t given, Stream *&found) {
  found = known(given);
  if (!streams.count(found)) return failed(name, "no stream of this library", cudaErrorInvalidResourceHandle);
  if (found->device != current) return failed(name, "the stream is of another device", cudaErrorInvalidResourceHandle);
  return cudaSuccess;
}
cudaError_t allocate(const char *name, void **found, size_t size, int device) {
  if (refused(name)) return last;
  if (device >= 0 && taken + size > room) return last = cudaErrorMemoryAllocation;
  size_t whole = (size + 511) / 512 * 512;
  char *begin = (char *)aligned_alloc(512, whole ? whole : 512);
  memset(begin, 0xFF, whole);                        // NaN, or far outside
  blocks[begin] = Block{begin, size, device};
  if (device >= 0) taken += size;
  *found = begin;
  return cudaSuccess;
}
cudaError_t release(const char *name, void *address, bool device) {
  if (!address) return cudaSuccess;
  if (refused(name)) return last;
  auto found = blocks.find((char *)address);
  if (found == blocks.end() || (found->second.device >= 0) != device) return failed(name, "no such memory");
  drain_all();
  if (device) taken -= found->second.size;
  free(found->second.begin);
  blocks.erase(found);
  return cudaSuccess;
}
}  // namespace

extern "C" {
// -- the tests' own ----------------------------------------------------------------------------------

void made_callbacks(int64_t (*p)(void *, unsigned, unsigned, unsigned, void **), void (*r)(int64_t),
                    int (*has)(), void *(*leave)(), void (*enter)(void *)) {
  prepare = p, run = r, has_python = has, leave_python = leave, enter_python = enter;
}
int made_work(void *to, int64_t number) {            // what a library asks of a stream
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, (cudaStream_t)to, stream)) return last;
  submit(stream, [=] { run(number); });
  return 0;
}
void made_room(size_t bytes) { Guard guard(lock); room = bytes; }
size_t made_taken() { return taken; }
const char *made_said() { return said.c_str(); }
void made_forget() { said.clear(); }
int made_owns(const void *address, size_t size) { Guard guard(lock); return on_device(address, size, 0) || on_device(address, size, 1); }
int made_missing(const char *name) {                 // what functions that are not here do
  failed(name, "is not made up here", cudaErrorNotSupported);
  return cudaErrorNotSupported;
}
// Let a function go on at another one: `mov rax, target; jmp rax`. Or, with a name, at
// `made_missing(name)`.
int made_patch(char *place, void *target, const char *name) {
  long page = sysconf(_SC_PAGESIZE);
  char *first = (char *)((uintptr_t)place / page * page);
  if (mprotect(first, place - first + 32, PROT_READ | PROT_WRITE | PROT_EXEC)) return 1;
  if (name) {
    *place++ = 0x48, *place++ = (char)0xBF;          // mov rdi, name
    memcpy(place, &name, 8), place += 8;
  }
  *place++ = 0x48, *place++ = (char)0xB8;
  memcpy(place, &target, 8), place += 8;
  *place++ = (char)0xFF, *place++ = (char)0xE0;
  return 0;
}

// -- devices -----------------------------------------------------------------------------------------

cudaError_t cudaRuntimeGetVersion(int *version) { *version = VERSION; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { *version = VERSION; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *count) { *count = DEVICES; return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { *device = current; return cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= DEVICES) return failed(__func__, "no such device", cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}
#if CUDART_VERSION >= 13000
#define cudaGetDeviceProperties_v2 cudaGetDeviceProperties
#endif
#undef cudaGetDeviceProperties
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp *found, int device) {
  memset(found, 0, sizeof *found);
  strcpy(found->name, "made-up H200");
  found->major = 9, found->minor = 0, found->totalGlobalMem = room, found->warpSize = 32;
  found->maxThreadsPerBlock = 1024, found->multiProcessorCount = 132, found->maxThreadsPerMultiProcessor = 2048;
  found->maxBlocksPerMultiProcessor = 32, found->sharedMemPerBlock = 48 << 10;
  found->sharedMemPerMultiprocessor = 233472, found->sharedMemPerBlockOptin = 232448;
  found->l2CacheSize = 50 << 20, found->memoryBusWidth = 6016;
#if CUDART_VERSION < 13000
  found->memoryClockRate = 2619000;
#endif
  found->pciBusID = device + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7FFFFFFF; break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  snprintf(text, size, "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) { *can = 1; return cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
  Guard guard(lock);
  if (refused(__func__)) return last;
  drain_all();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { cudaError_t found = last; last = cudaSuccess; return found; }
cudaError_t cudaPeekAtLastError() { return last; }
const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : error == cudaErrorNotSupported ? "cudaErrorNotSupported" :
    error == cudaErrorStreamCaptureUnsupported ? "cudaErrorStreamCaptureUnsupported" : "cudaErrorOfTheTests";
}
const char *cudaGetErrorString(cudaError_t error) { return error == cudaErrorMemoryAllocation ? "out of memory" : said.c_str(); }

// -- memory ------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void **found, size_t size) { Guard guard(lock); return allocate(__func__, found, size, current); }
cudaError_t cudaFree(void *address) { Guard guard(lock); return release(__func__, address, true); }
cudaError_t cudaHostAlloc(void **found, size_t size, unsigned) { Guard guard(lock); return allocate(__func__, found, size, -1); }
cudaError_t cudaMallocHost(void **found, size_t size) { Guard guard(lock); return allocate(__func__, found, size, -1); }
cudaError_t cudaFreeHost(void *address) { Guard guard(lock); return release(__func__, address, false); }
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) { *total = room, *free = room - taken; return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *address) {
  Guard guard(lock);
  Block *block = block_of(address, 1);
  memset(found, 0, sizeof *found);
  found->device = block ? block->device : -1;
  found->type = !block ? cudaMemoryTypeUnregistered : block->device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  found->devicePointer = found->hostPointer = (void *)address;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t size, cudaMemcpyKind kind, cudaStream_t given) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, given, stream)) return last;
  if (kind == cudaMemcpyDefault) {                   // as the addresses tell
    bool from = overlaps(source, size) && !is_host(source, size), to = overlaps(target, size) && !is_host(target, size);
    kind = from ? to ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost : to ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
  }
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (!(from_device ? on_device(source, size, current) : is_host(source, size)))
    return failed(__func__, "the source is not where the kind of copy says");
  if (!(to_device ? on_device(target, size, current) : is_host(target, size)))
    return failed(__func__, "the target is not where the kind of copy says");
  bool pageable = (!from_device && !block_of(source, size)) || (!to_device && !block_of(target, size));
  if (pageable && made_records(stream)) { refused(__func__); return last; }
  if (pageable && !from_device) {                    // its elements are taken at once
    auto kept = std::make_shared<std::vector<char>>((char *)source, (char *)source + size);
    submit(stream, [=] { memcpy(target, kept->data(), size); });
    return cudaSuccess;
  }
  submit(stream, [=] { memcpy(target, source, size); });
  if (pageable) drain(stream);                       // to pageable memory: it waits
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void *target, int to, const void *source, int from, size_t size, cudaStream_t given) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, given, stream)) return last;
  if (!on_device(target, size, to) || !on_device(source, size, from)) return failed(__func__, "memory of another device");
  submit(stream, [=] { memcpy(target, source, size); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *target, int value, size_t size, cudaStream_t given) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, given, stream)) return last;
  if (!on_device(target, size, current)) return failed(__func__, "no memory of the device");
  submit(stream, [=] { memset(target, value, size); });
  return cudaSuccess;
}

// -- streams, events, graphs -------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned flags) {
  Guard guard(lock);
  if (flags != cudaStreamNonBlocking) return failed(__func__, "a stream that waits for others");
  *made = (cudaStream_t)*streams.insert(new Stream{current, {}}).first;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *made, unsigned flags, int) { return cudaStreamCreateWithFlags(made, flags); }
cudaError_t cudaStreamDestroy(cudaStream_t given) {
  Guard guard(lock);
  Stream *stream = (Stream *)given;
  if (!streams.count(stream)) return failed(__func__, "no stream");
  drain(stream);
  streams.erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t given) {
  Guard guard(lock);
  Stream *stream = known(given);
  if (!streams.count(stream)) return failed(__func__, "no stream");
  if (refused(__func__)) return last;
  drain(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t given) { return known(given)->todo.empty() ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaStreamIsCapturing(cudaStream_t given, cudaStreamCaptureStatus *status) {
  *status = made_records(given) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t given, cudaStreamCaptureMode mode) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, given, stream)) return last;
  if (mode != cudaStreamCaptureModeThreadLocal || recording) return failed(__func__, "another mode, or within another");
  made_begin(stream);
  stream->invalid = false, recording = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t given, cudaGraph_t *graph) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, given, stream)) return last;
  if (recording != stream) return failed(__func__, "another thread began");
  recording = nullptr;
  *graph = (cudaGraph_t)made_end(stream);
  if (!*graph || stream->invalid) { *graph = nullptr; return last = cudaErrorStreamCaptureInvalidated; }
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
  *made = (cudaGraphExec_t) new Exec{graph};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t given, cudaStream_t to) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, to, stream)) return last;
  if (refused(__func__)) return last;
  void *graph = ((Exec *)given)->graph;
  stream->todo.push_back([=] { if (made_run(graph, execute)) failed("a graph", "its nodes are not in order"); });
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t given) { Guard guard(lock); drain_all(); delete (Exec *)given; return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned) { *made = (cudaEvent_t) new Event; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t given, cudaStream_t to) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, to, stream)) return last;
  if (made_records(stream)) { refused(__func__); return last; }  // such events are no marks for others
  Event *event = (Event *)given;
  event->done = false, event->stream = stream;
  int64_t time = ++event->time;
  stream->todo.push_back([=] { if (event->time == time) event->done = true; });
  return cudaSuccess;
}
static void reach(Event *event) {                    // let a stream go as far as an event
  while (!event->done && !event->stream->todo.empty()) {
    Work work = std::move(event->stream->todo.front());
    event->stream->todo.pop_front();
    work();
  }
}
cudaError_t cudaEventSynchronize(cudaEvent_t given) { Guard guard(lock); if (refused(__func__)) return last; reach((Event *)given); return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t given) { Guard guard(lock); reach((Event *)given); return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t to, cudaEvent_t given, unsigned) {
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, to, stream)) return last;
  Event *event = (Event *)given;
  if (made_records(stream)) { refused(__func__); return last; }
  if (event->done) return cudaSuccess;
  Stream *other = event->stream;
  auto left = std::make_shared<bool>(false);         // what stands before the event in the other stream
  other->todo.push_back([=] { *left = true; });      // an event may be recorded again
  stream->todo.push_back([=] {
    while (!*left && !other->todo.empty()) {
      Work work = std::move(other->todo.front());
      other->todo.pop_front();
      work();
    }
  });
  return cudaSuccess;
}

// -- the driver --------------------------------------------------------------------------------------

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuGetExportTable(const void **table, const CUuuid *) {  // NVRTC asks: it begins with its size
  static const uint64_t empty = sizeof empty;
  *table = &empty;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) { *version = VERSION; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult, const char **text) { *text = "CUDA_ERROR_OF_THE_TESTS"; return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char **text) { *text = said.c_str(); return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule *made, const void *image) {
  Guard guard(lock);
  if (refused(__func__)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (memcmp(image, "\x7f" "ELF", 4)) { failed(__func__, "no binary of a GPU"); return CUDA_ERROR_INVALID_IMAGE; }
  auto *header = (const char *)image;                // the sections stand at the end of the file
  uint64_t offset; uint16_t size, count;
  memcpy(&offset, header + 0x28, 8), memcpy(&size, header + 0x3A, 2), memcpy(&count, header + 0x3C, 2);
  *made = (CUmodule) new Module{std::string(header, offset + size_t(size) * count)};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *made, CUmodule module, const char *name) {
  Guard guard(lock);
  if (((Module *)module)->image.find(".text." + std::string(name)) == std::string::npos) {
    failed(__func__, std::string("no function ") + name);
    return CUDA_ERROR_NOT_FOUND;
  }
  *made = (CUfunction) new Function{name};
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute asked, CUfunction function) {
  switch (asked) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 40; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 16; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = ((Function *)function)->most_shared; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute asked, int value) {
  if (asked != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 232448) return CUDA_ERROR_INVALID_VALUE;
  ((Function *)function)->most_shared = value;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction given, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                        unsigned shared, CUstream to, void **parameters, void **extra) {
  Function *asked = (Function *)given;
  int64_t number = asked->name == "td_decide" ? 0 : prepare(asked, x, threads, shared, parameters);
  Guard guard(lock);
  Stream *stream;
  if (stream_of(__func__, to, stream)) return CUDA_ERROR_INVALID_HANDLE;
  Function *function = (Function *)given;
  if (!x || x > 0x7FFFFFFF || y != 1 || z != 1 || !threads || threads > 1024 || ty != 1 || tz != 1 || extra || int(shared) > function->most_shared) {
    failed(__func__, "sizes that a device has not: " + function->name);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (function->name == "td_decide") {
    auto *words = (uint64_t **)parameters;
    uint64_t yes = *words[0], no = *words[1];
    const bool *flag = (const bool *)*words[2];
    if (!made_records(stream)) { failed(__func__, "conditional nodes are parts of recordings"); return CUDA_ERROR_INVALID_VALUE; }
    made_decide(stream, yes, no, flag);
    return CUDA_SUCCESS;
  }
  if (number < 0) { failed(__func__, "no kernel of treadle: " + function->name); return CUDA_ERROR_NOT_SUPPORTED; }
  submit(stream, [=] { run(number); });
  return CUDA_SUCCESS;
}
}
