// Where variables that are declared __shared__ lie. What nobody wrote holds a pattern that no kernel can like.
#include <cstring>
#include <utility>

#include "state.h"

namespace cudaemu {

constexpr int uninitialised = 0xCB;
constexpr size_t alignment = 128;
static uint64_t known_launch;
static size_t used;  // static shared memory of this launch's kernel, as far as its variables were met
static std::vector<std::pair<size_t, size_t>> gaps;  // between them: where each begins, and its bytes

void *shared(Slot &slot, size_t bytes) {
    if (known_launch != launches) known_launch = launches, used = 0, gaps.clear();
    if (slot.launch != launches) {
        slot = {launches, used};
        size_t end = used + bytes;
        used = (end + alignment - 1) / alignment * alignment;
        gaps.emplace_back(end, used - end);
        if (used > Block::static_shared_bytes) leave("more than 48 KB of static __shared__ variables");
    }
    Block &block = *me->block;
    if (block.filled < used) {
        allow(block.shared + block.filled, used - block.filled);
        memset(block.shared + block.filled, uninitialised, used - block.filled);
        block.filled = used;
        for (auto [begin, size] : gaps) forbid(block.shared + begin, size);
    }
    return block.shared + slot.offset;
}

void *dynamic_shared() { return me->block->shared + Block::static_shared_bytes; }

void prepare_dynamic_shared(Block &block) {
    allow(block.shared + Block::static_shared_bytes, launch.dynamic_shared);
    memset(block.shared + Block::static_shared_bytes, uninitialised, launch.dynamic_shared);
    forbid(block.shared + Block::static_shared_bytes + launch.dynamic_shared, Block::shared_bytes - launch.dynamic_shared);
}

}  // namespace cudaemu
