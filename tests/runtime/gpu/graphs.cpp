// The driver's calls for conditional nodes, on the processor: what they are given is judged as the
// driver judges it, and graphs are executed. The calls that begin with `made` are the tests' own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

// As in cuda.h, which test_conditionals.py compares where it is.
struct Conditional { uint64_t handle; int type; unsigned size; void **phGraph_out; void *ctx; };
struct Parameters {
  int type, reserved0[3];
  union { int64_t reserved1[29]; Conditional conditional; };
  int64_t reserved2;
};
static_assert(sizeof(Parameters) == 256 && offsetof(Parameters, conditional) == 16);

enum { INVALID = 1, NOT_RECORDING = 901, RECORDING = 900 };
enum Kind { CALL, DECIDE, CONDITIONAL };
struct Graph;
struct Node {
  Kind kind;
  Graph *graph;
  std::vector<Node *> before;
  int64_t number;                    // of a call
  uint64_t handles[2];               // that a kernel sets, or that a conditional node looks at
  const bool *flag;
  bool loops;
  Graph *inner;
};
struct Graph { std::vector<Node *> nodes; };
struct Stream { Graph *graph = nullptr; std::vector<Node *> last; };
static std::map<void *, Stream> streams;
static std::map<uint64_t, Graph *> handles;    // the graph that each may be used in
static std::map<uint64_t, unsigned> values;
static int context, calls_until_failure = -1;

static bool fails() { return calls_until_failure >= 0 && calls_until_failure-- == 0; }
static bool has(const Graph *graph, const Node *node) {
  return std::count(graph->nodes.begin(), graph->nodes.end(), node) == 1;
}
static void add(Stream &stream, Node node) {
  node.graph = stream.graph;
  node.before = stream.last;
  stream.graph->nodes.push_back(new Node(node));
  stream.last = {stream.graph->nodes.back()};
}
static bool execute(Graph *graph, void (*call)(int64_t)) {
  std::vector<Node *> done;
  for (Node *node : graph->nodes) {
    if (node->before != done) return false;    // one stream: each node depends on the one before
    done = {node};
    if (node->kind == CALL) call(node->number);
    if (node->kind == DECIDE)
      for (int n = 0; n < 2; n++)
        if (node->handles[n]) values[node->handles[n]] = n ? !*node->flag : *node->flag;
    if (node->kind != CONDITIONAL) continue;
    while (values.at(node->handles[0])) {
      if (!execute(node->inner, call)) return false;
      if (!node->loops) break;
    }
  }
  return true;
}

extern "C" {
void made_begin(void *stream) { streams[stream] = Stream{new Graph, {}}; }
void *made_end(void *stream) { Graph *graph = streams[stream].graph; streams[stream] = Stream(); return graph; }
int made_records(void *stream) { return streams[stream].graph != nullptr; }
void made_call(void *stream, int64_t number) { add(streams[stream], Node{CALL, nullptr, {}, number}); }
void made_decide(void *stream, uint64_t yes, uint64_t no, const bool *flag) {
  add(streams[stream], Node{DECIDE, nullptr, {}, 0, {yes, no}, flag});
}
int made_run(void *graph, void (*call)(int64_t)) { values.clear(); return execute((Graph *)graph, call) ? 0 : INVALID; }
void made_fail(int after) { calls_until_failure = after; }

int cuCtxGetCurrent(void **found) { *found = &context; return fails() * INVALID; }

int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *, void **graph, Node ***nodes, void **edges, size_t *count) {
  Stream &found = streams[stream];
  *status = found.graph != nullptr;
  *graph = found.graph, *nodes = found.last.data(), *edges = nullptr, *count = found.last.size();
  return fails() * INVALID;
}

int cuGraphConditionalHandleCreate(uint64_t *handle, Graph *graph, void *where, unsigned first, unsigned flags) {
  if (fails() || !graph || where != &context || first || flags) return INVALID;
  handles[*handle = 1000 + handles.size()] = graph;
  return 0;
}

int cuGraphAddNode_v2(Node **node, Graph *graph, Node **before, void *edges, size_t count, Parameters *given) {
  const Conditional &asked = given->conditional;
  for (int word : given->reserved0) if (word) return INVALID;
  if (fails() || given->type != 13 || given->reserved2 || asked.size != 1 || asked.ctx != &context || edges) return INVALID;
  if ((asked.type != 0 && asked.type != 1) || !handles.count(asked.handle) || handles[asked.handle] != graph) return INVALID;
  for (size_t n = 0; n < count; n++) if (!has(graph, before[n])) return INVALID;
  handles[asked.handle] = nullptr;    // one handle decides about one node
  Node made{CONDITIONAL, graph, {before, before + count}, 0, {asked.handle, 0}, nullptr, asked.type == 1, new Graph};
  graph->nodes.push_back(*node = new Node(made));
  given->conditional.phGraph_out = new void *[1]{(*node)->inner};
  return 0;
}

int cuStreamUpdateCaptureDependencies_v2(void *stream, Node **nodes, void *edges, size_t count, unsigned flags) {
  Stream &found = streams[stream];
  if (fails() || flags != 1 || edges) return INVALID;
  if (!found.graph) return NOT_RECORDING;
  for (size_t n = 0; n < count; n++) if (!has(found.graph, nodes[n])) return INVALID;
  found.last.assign(nodes, nodes + count);
  return 0;
}

int cuStreamBeginCaptureToGraph(void *stream, Graph *graph, Node **before, void *edges, size_t count, int mode) {
  if (fails() || mode != 1 || edges || !graph) return INVALID;
  if (streams[stream].graph) return RECORDING;
  for (size_t n = 0; n < count; n++) if (!has(graph, before[n])) return INVALID;
  streams[stream] = Stream{graph, {before, before + count}};
  return 0;
}

int cuStreamEndCapture(void *stream, void **graph) {
  if (!streams[stream].graph) return NOT_RECORDING;
  *graph = made_end(stream);
  return fails() * INVALID;
}
}
