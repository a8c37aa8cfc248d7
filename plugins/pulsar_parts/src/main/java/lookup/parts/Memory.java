package lookup.parts;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The contents of a strategy's fields at one moment, to put back after a question that a load manager would not have asked.
 *
 * <p>It covers collections, arrays, atomic values, and objects of the strategy's own package. The reports that a strategy refers to
 * are not part of its memory.
 */
final class Memory {
    private static final String MUTABLE = "org.apache.commons.lang3.mutable";

    /** Puts one thing back. */
    private interface Undo {
        void run() throws ReflectiveOperationException;
    }

    private final List<Undo> undo = new ArrayList<>();
    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    private final String home;

    Memory(Object owner) throws ReflectiveOperationException {
        home = owner.getClass().getPackageName();
        keep(owner);
    }

    /** Put everything back, any number of times. */
    void restore() throws ReflectiveOperationException {
        for (Undo each : undo) {
            each.run();
        }
    }

    private void keep(Object value) throws ReflectiveOperationException {
        if (value == null || !seen.add(value)) {
            return;
        }
        if (value instanceof Map<?, ?> map) {
            keepMap(map);
        } else if (value instanceof Collection<?> items) {
            keepItems(items);
        } else if (value instanceof AtomicInteger number) {
            int kept = number.get();
            undo.add(() -> number.set(kept));
        } else if (value instanceof AtomicLong number) {
            long kept = number.get();
            undo.add(() -> number.set(kept));
        } else if (value instanceof AtomicBoolean flag) {
            boolean kept = flag.get();
            undo.add(() -> flag.set(kept));
        } else if (value instanceof AtomicReference<?> reference) {
            keepReference(reference);
        } else if (value.getClass().isArray()) {
            keepArray(value);
        } else if (Set.of(home, MUTABLE).contains(value.getClass().getPackageName())) {
            keepFields(value);
        }
    }

    private <K, V> void keepMap(Map<K, V> map) throws ReflectiveOperationException {
        List<SimpleEntry<K, V>> kept = new ArrayList<>();
        map.forEach((key, value) -> kept.add(new SimpleEntry<>(key, value)));
        undo.add(() -> {
            if (!new ArrayList<>(map.entrySet()).equals(kept)) {
                map.clear();
                kept.forEach(entry -> map.put(entry.getKey(), entry.getValue()));
            }
        });
        for (SimpleEntry<K, V> entry : kept) {
            keep(entry.getValue());
        }
    }

    private <T> void keepItems(Collection<T> items) throws ReflectiveOperationException {
        List<T> kept = new ArrayList<>(items);
        undo.add(() -> {
            if (!new ArrayList<>(items).equals(kept)) {
                items.clear();
                items.addAll(kept);
            }
        });
        for (T item : kept) {
            keep(item);
        }
    }

    private <T> void keepReference(AtomicReference<T> reference) throws ReflectiveOperationException {
        T kept = reference.get();
        undo.add(() -> reference.set(kept));
        keep(kept);
    }

    private void keepArray(Object array) throws ReflectiveOperationException {
        int length = Array.getLength(array);
        Object kept = Array.newInstance(array.getClass().getComponentType(), length);
        System.arraycopy(array, 0, kept, 0, length);
        undo.add(() -> System.arraycopy(kept, 0, array, 0, length));
        for (int i = 0; i < length && kept instanceof Object[]; i++) {
            keep(Array.get(kept, i));
        }
    }

    private void keepFields(Object owner) throws ReflectiveOperationException {
        for (Class<?> type = owner.getClass(); type != Object.class; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers())) {
                    continue;
                }
                field.setAccessible(true);
                Object kept = field.get(owner);
                if (!Modifier.isFinal(field.getModifiers())) {
                    undo.add(() -> field.set(owner, kept));
                }
                keep(kept);
            }
        }
    }
}
