// Greedy coloring: see interfaces.py. One kernel goes on until nobody is ready.
//
// A node has a row of bits for the colors before it: one more than it has neighbours before it, as it needs no higher color. A
// neighbour that is colored sets its bit there, then takes one from what the node waits for. Who takes the last one sees
// all bits, and colors the node; its edges come next. So rows are walked through once, by edges, and blocks may go on by
// themselves.
#include "cusp/apps/operators/frontier.cuh"

struct Coloring {
  i64 masters;
  const i64* offsets;     // of each proxy's neighbours that are masters of this rank
  const int* neighbours;
  const i64* begins;      // of each master's words
  u64* taken;
  int* colors;            // below 0: -1 less the neighbours before it that have not told; -1 of mirrors that are not known
  unsigned* updated;

  // As other blocks have left it.
  __device__ int color(int lid) const { return *(volatile int*)&colors[lid]; }

  __device__ void tell(int color, int master) const {
    i64 word = begins[master] + color / 64;
    if (word < begins[master + 1]) atomicOr(&taken[word], 1ull << color % 64);
  }

  __device__ int lowest_free(int master) const {
    i64 word = begins[master];
    u64 bits = peek(&taken[word]);
    while (bits == ~0ull) bits = peek(&taken[++word]);
    return (int)(64 * (word - begins[master])) + __ffsll(~bits) - 1;
  }

  // Masters are colored that wait for nobody. The whole warp calls it.
  template <class Out>
  __device__ void take(const bool (&ready)[K], const int (&lid)[K], Out out) const {
    bool any = false;
    each_k([&](int k) { any |= ready[k]; });
    if (!__any_sync(FULL, any)) return;
    __threadfence();  // all bits are there, as all have told
    each_k([&](int k) {
      if (ready[k]) *(volatile int*)&colors[lid[k]] = lowest_free(lid[k]), set_bit(updated, lid[k]);
    });
    append_all(out, ready, lid, offsets);
  }
};

extern "C" __global__ void __launch_bounds__(512, RESIDENT)
color_nodes(i64 proxies, const unsigned* frontier, Coloring own, Queues queues) {
  unsigned step = 0;
  queues.begin();
  queues.barrier();
  Queue first = queues.of_step(step);
  for_each_marked(frontier, proxies, [&](const bool (&chosen)[K], const int (&lid)[K]) {
    bool ready[K], mirror[K];
    each_k([&](int k) {
      mirror[k] = chosen[k] && lid[k] >= own.masters;
      ready[k] = chosen[k] && !mirror[k] && own.color(lid[k]) < 0;
    });
    own.take(ready, lid, first);
    append_all(first, mirror, lid, own.offsets);
  });
  queues.barrier();
  auto visit = [&](const Edges& edges, auto out) {
    int lid[K];
    bool waits[K], ready[K];
    each_k([&](int k) { lid[k] = edges.active[k] ? own.neighbours[edges.place[k]] : -1; });
    each_k([&](int k) { waits[k] = lid[k] >= 0 && own.color(lid[k]) < -1; });
    each_k([&](int k) { if (waits[k]) own.tell(own.color(edges.node[k]), lid[k]); });
    __threadfence();
    each_k([&](int k) { ready[k] = waits[k] && atomicAdd(&own.colors[lid[k]], 1) == -2; });
    own.take(ready, lid, out);
  };
  Bound bound = {1ll << 60, 1ll << 60};
  drain(queues, step, own.offsets, visit, [](int) { return true; }, bound);
}
