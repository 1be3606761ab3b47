/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

#include "prims/asyncThreads.hpp"

#include "prims/asyncTickets.hpp"
#include "runtime/atomic.hpp"
#include "runtime/orderAccess.hpp"
#include "runtime/os.hpp"
#include "runtime/thread.hpp"

// One hash table with three kinds of keys: OS thread id, Thread*, and each granule of the address
// space that a thread's stack touches. Neighbouring stacks may share a granule, so a key may be
// there more than once; the node that a slot points to decides.
//
// Writers hold a spin lock. Readers may see a slot of a table that is being replaced, or a node
// that is given to another thread meanwhile: tables and nodes are never freed, nodes have a
// sequence number, and each match is checked against its node. So the worst that a race does is a
// miss.

namespace {

struct Node {
  volatile uint32_t sequence;  // odd while it changes
  Thread* volatile thread;     // null when unused
  volatile AsyncThreads::Kind kind;
  volatile uintptr_t low;
  volatile uintptr_t high;
  volatile jlong os_thread_id;
  AsyncMarks* volatile marks;
  Node* next_free;
};

struct Slot {
  volatile uint64_t key;
  Node* volatile node;
};

struct Table {
  size_t capacity;  // a power of two
  Slot* slots;
};

constexpr uint64_t kEmpty = 0;
constexpr uint64_t kRemoved = 4;  // keys in use have a kind in the lowest two bits
constexpr uint64_t kStackKind = 1;
constexpr uint64_t kIdKind = 2;
constexpr uint64_t kThreadKind = 3;

constexpr int kGranuleBits = 20;
// A larger stack is found by its upper part only.
constexpr uintptr_t kMaxGranules = 4096;

constexpr size_t kFirstCapacity = 4096;
constexpr size_t kFirstNodes = 256;
constexpr size_t kMoreNodes = 1024;

Slot first_slots[2][kFirstCapacity];
Table first_tables[2] = {{kFirstCapacity, first_slots[0]}, {kFirstCapacity, first_slots[1]}};
Node first_nodes[kFirstNodes];

// The table in use and the one to move to when removed keys have filled it.
Table* volatile table = &first_tables[0];
Table* spare = &first_tables[1];
size_t filled = 0;  // slots not empty, removed ones included
size_t live = 0;    // slots with a node
Node* free_nodes = nullptr;
bool first_nodes_given = false;
volatile int lock_word = 0;

struct WriterLock : AsyncSpinLock {
  WriterLock() : AsyncSpinLock(&lock_word) {}
};

uint64_t stack_key(uintptr_t granule) { return (uint64_t(granule) << 2) | kStackKind; }
uint64_t id_key(jlong id) { return (uint64_t(id) << 2) | kIdKind; }
uint64_t thread_key(const void* thread) { return uint64_t(p2i(thread)) | kThreadKind; }

size_t first_index(uint64_t key, size_t capacity) {
  return size_t((key * 0x9e3779b97f4a7c15ull) >> 20) & (capacity - 1);
}

void put(Table* into, uint64_t key, Node* node) {
  for (size_t i = first_index(key, into->capacity);; i = (i + 1) & (into->capacity - 1)) {
    Slot& slot = into->slots[i];
    if (slot.key != kEmpty && slot.key != kRemoved) continue;
    if (slot.key == kEmpty) filled++;
    live++;
    slot.node = node;
    Atomic::release_store(&slot.key, key);
    return;
  }
}

void take(uint64_t key, const Node* node) {
  for (size_t i = first_index(key, table->capacity);; i = (i + 1) & (table->capacity - 1)) {
    Slot& slot = table->slots[i];
    if (slot.key == kEmpty) return;
    if (slot.key == key && slot.node == node) {
      Atomic::store(&slot.key, kRemoved);
      live--;
      return;
    }
  }
}

// Fills `to` with the keys in use, and readers go there from then on.
void move_to(Table* to) {
  const Table* const from = table;
  for (size_t i = 0; i < to->capacity; i++) to->slots[i] = {kEmpty, nullptr};
  filled = live = 0;
  for (size_t i = 0; i < from->capacity; i++) {
    if ((from->slots[i].key & 3) != 0) put(to, from->slots[i].key, from->slots[i].node);
  }
  Atomic::release_store(&table, to);
}

// Room for `more` keys at a load of at most one half.
void reserve(size_t more) {
  Table* const old = table;
  if ((filled + more) * 2 <= old->capacity) return;
  size_t capacity = old->capacity;
  while ((live + more) * 4 > capacity) capacity *= 2;
  if (capacity == old->capacity) {
    move_to(spare);
    spare = old;
    return;
  }
  Table* const tables = NEW_C_HEAP_ARRAY(Table, 2, mtThread);
  for (int i = 0; i < 2; i++) {
    tables[i] = {capacity, NEW_C_HEAP_ARRAY(Slot, capacity, mtThread)};
  }
  move_to(&tables[0]);
  spare = &tables[1];
}

Node* new_node() {
  if (free_nodes == nullptr) {
    Node* nodes = first_nodes;
    size_t count = kFirstNodes;
    if (first_nodes_given) {
      count = kMoreNodes;
      nodes = NEW_C_HEAP_ARRAY(Node, count, mtThread);
      for (size_t i = 0; i < count; i++) nodes[i] = {};
    }
    first_nodes_given = true;
    for (size_t i = 0; i < count; i++) {
      nodes[i].next_free = free_nodes;
      free_nodes = &nodes[i];
    }
  }
  Node* node = free_nodes;
  free_nodes = node->next_free;
  return node;
}

// A consistent copy of a node in use.
bool read_node(const Node* node, AsyncThreads::Entry* entry) {
  for (int tries = 0; tries < 8; tries++) {
    const uint32_t before = Atomic::load_acquire(&node->sequence);
    if ((before & 1) != 0) continue;
    const AsyncThreads::Entry copy = {node->thread, node->kind,         node->low,
                                      node->high,   node->os_thread_id, node->marks};
    OrderAccess::loadload();
    if (Atomic::load(&node->sequence) != before) continue;
    if (copy.thread == nullptr) return false;
    *entry = copy;
    return true;
  }
  return false;
}

AsyncThreads::Kind kind_of(const Thread* thread) {
  if (thread->is_Java_thread()) return AsyncThreads::Kind::java;
  if (thread->is_ConcurrentGC_thread() || thread->is_Worker_thread()) return AsyncThreads::Kind::gc;
  return thread->is_VM_thread() ? AsyncThreads::Kind::vm : AsyncThreads::Kind::other;
}

void write_node(Node* node, Thread* thread, AsyncThreads::Kind kind, uintptr_t low, uintptr_t high,
                jlong id) {
  Atomic::store(&node->sequence, node->sequence + 1);
  OrderAccess::storestore();
  node->thread = thread;
  node->kind = kind;
  node->low = low;
  node->high = high;
  node->os_thread_id = id;
  node->marks = nullptr;
  Atomic::release_store(&node->sequence, node->sequence + 1);
}

template <typename Matches>
bool find(uint64_t key, AsyncThreads::Entry* entry, Matches matches) {
  const Table* const in = Atomic::load_acquire(&table);
  size_t i = first_index(key, in->capacity);
  for (size_t probes = 0; probes < in->capacity; probes++) {
    const uint64_t found = Atomic::load_acquire(&in->slots[i].key);
    if (found == kEmpty) return false;
    if (found == key) {
      const Node* const node = in->slots[i].node;
      AsyncThreads::Entry candidate;
      if (node != nullptr && read_node(node, &candidate) && matches(candidate)) {
        *entry = candidate;
        return true;
      }
    }
    i = (i + 1) & (in->capacity - 1);
  }
  return false;
}

template <typename Action>
void for_each_key(Thread* thread, uintptr_t low, uintptr_t high, jlong id, Action action) {
  action(id_key(id));
  action(thread_key(thread));
  const uintptr_t last = (high - 1) >> kGranuleBits;
  uintptr_t first = low >> kGranuleBits;
  if (last - first >= kMaxGranules) first = last - kMaxGranules + 1;
  for (uintptr_t granule = first; granule <= last; granule++) action(stack_key(granule));
}

Node* node_of(const Thread* thread) {
  const uint64_t key = thread_key(thread);
  for (size_t i = first_index(key, table->capacity); table->slots[i].key != kEmpty;
       i = (i + 1) & (table->capacity - 1)) {
    if (table->slots[i].key == key && table->slots[i].node->thread == thread) {
      return table->slots[i].node;
    }
  }
  return nullptr;
}

AsyncMarks* remove_locked(Thread* thread) {
  AsyncThreads::Entry entry;
  Node* const node = node_of(thread);
  if (node == nullptr || !read_node(node, &entry)) return nullptr;
  for_each_key(thread, entry.stack_low, entry.stack_high, entry.os_thread_id,
               [&](uint64_t each) { take(each, node); });
  write_node(node, nullptr, AsyncThreads::Kind::other, 0, 0, 0);
  node->next_free = free_nodes;
  free_nodes = node;
  return entry.marks;
}

}  // namespace

void AsyncThreads::add(Thread* thread, address stack_base, size_t stack_size) {
  const uintptr_t high = p2u(stack_base);
  const uintptr_t low = high - stack_size;
  const jlong id = os::current_thread_id();
  WriterLock lock;
  remove_locked(thread);
  reserve(MIN2((stack_size >> kGranuleBits) + 2, size_t(kMaxGranules)) + 2);
  Node* const node = new_node();
  write_node(node, thread, kind_of(thread), low, high, id);
  for_each_key(thread, low, high, id, [&](uint64_t key) { put(table, key, node); });
}

AsyncMarks* AsyncThreads::remove(Thread* thread) {
  WriterLock lock;
  return remove_locked(thread);
}

bool AsyncThreads::set_marks(const Thread* thread, AsyncMarks* marks) {
  WriterLock lock;
  Node* const node = node_of(thread);
  if (node != nullptr) Atomic::release_store(&node->marks, marks);
  return node != nullptr;
}

bool AsyncThreads::is_locked() { return Atomic::load(&lock_word) != 0; }

bool AsyncThreads::find_by_stack(uintptr_t stack_address, Entry* entry) {
  return find(stack_key(stack_address >> kGranuleBits), entry, [&](const Entry& candidate) {
    return stack_address >= candidate.stack_low && stack_address < candidate.stack_high;
  });
}

bool AsyncThreads::find_by_os_thread_id(jlong os_thread_id, Entry* entry) {
  return find(id_key(os_thread_id), entry,
              [&](const Entry& candidate) { return candidate.os_thread_id == os_thread_id; });
}

bool AsyncThreads::find_by_thread(const void* thread, Entry* entry) {
  // A word that is no Thread* may look like another kind of key.
  if ((p2i(thread) & 3) != 0) return false;
  return find(thread_key(thread), entry,
              [&](const Entry& candidate) { return candidate.thread == thread; });
}
