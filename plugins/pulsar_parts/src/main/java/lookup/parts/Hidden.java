package lookup.parts;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** What Pulsar's classes keep to themselves, or have in some releases only; by reflection. */
final class Hidden {
    private Hidden() { }

    /** Return the value of a field, whatever its access. */
    @SuppressWarnings("unchecked")
    static <T> T get(Object owner, String name) throws ReflectiveOperationException {
        return (T) field(owner.getClass(), name).get(owner);
    }

    /** Set a field, whatever its access. */
    static void set(Object owner, String name, Object value) throws ReflectiveOperationException {
        field(owner.getClass(), name).set(owner, value);
    }

    /** Return whether objects of a class have a field of this name. */
    static boolean has(Object owner, String name) {
        try {
            field(owner.getClass(), name);
            return true;
        } catch (NoSuchFieldException e) {
            return false;
        }
    }

    /** Call the method of this name and number of arguments, of an object or, statically, of a class. */
    @SuppressWarnings("unchecked")
    static <T> T call(Object owner, String name, Object... given) throws Exception {
        Class<?> type = owner instanceof Class<?> c ? c : owner.getClass();
        Method method = method(type, name, given.length);
        if (method == null) {
            throw new NoSuchMethodException(type.getName() + "." + name);
        }
        try {
            return (T) method.invoke(owner == type ? null : owner, given);
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    /** Return the method of this name and number of arguments, or null if this release has none. */
    static Method method(Class<?> type, String name, int arguments) {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            for (Method method : c.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments && !method.isBridge()) {
                    method.setAccessible(true);
                    return method;
                }
            }
        }
        for (Method method : type.getMethods()) {
            // Defaults of interfaces.
            if (method.getName().equals(name) && method.getParameterCount() == arguments) {
                return method;
            }
        }
        return null;
    }

    /** Make an object by the constructor of this number of arguments, whose types differ between releases. */
    @SuppressWarnings("unchecked")
    static <T> T make(Class<T> type, Object... given) throws ReflectiveOperationException {
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            if (constructor.getParameterCount() == given.length) {
                constructor.setAccessible(true);
                return (T) constructor.newInstance(given);
            }
        }
        throw new NoSuchMethodException(type.getName() + " with " + given.length + " arguments");
    }

    /** Make an object of which no constructor is run, not even those of its parents: all its fields are 0 or null. */
    static <T> T bare(Class<T> type) throws ReflectiveOperationException {
        // By name, or javac warns of an API of the JDK.
        Class<?> factory = Class.forName("sun.reflect.ReflectionFactory");
        Object made = factory.getMethod("getReflectionFactory").invoke(null);
        Object constructor = factory.getMethod("newConstructorForSerialization", Class.class, Constructor.class)
                .invoke(made, type, Object.class.getDeclaredConstructor());
        return type.cast(((Constructor<?>) constructor).newInstance());
    }

    private static Field field(Class<?> type, String name) throws NoSuchFieldException {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            for (Field field : c.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(type.getName() + "." + name);
    }
}
